package storage_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestSetUpOnce(t *testing.T) {
	const callers = 8
	s := storagetest.Open(t)
	for name, err := range map[string]error{
		"a weak password": errOf(s.SetUp(t.Context(), "one@example.org", "short")),
		"no address":      errOf(s.SetUp(t.Context(), "nobody", goodPassword)),
	} {
		if !errors.Is(err, storage.ErrWeakPassword) && !errors.Is(err, storage.ErrInvalidEmail) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if has := must(s.HasUsers(t.Context()))(t); has {
		t.Fatal("there is a user before the set-up")
	}
	var won, lost atomic.Int64
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			user, err := s.SetUp(t.Context(), string(rune('a'+i))+"@example.org", goodPassword)
			switch {
			case err == nil && user.Role == storage.OperatorRole:
				won.Add(1)
			case errors.Is(err, storage.ErrAlreadySetUp):
				lost.Add(1)
			default:
				t.Errorf("%+v, %v", user, err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 || lost.Load() != callers-1 {
		t.Errorf("%d set-ups, %d refused", won.Load(), lost.Load())
	}
	if err := errOf(s.SetUp(t.Context(), "late@example.org", goodPassword)); !errors.Is(err, storage.ErrAlreadySetUp) {
		t.Errorf("afterwards: got %v, want ErrAlreadySetUp", err)
	}
	if users := must(s.Users(t.Context()))(t); len(users) != 1 {
		t.Errorf("%d users", len(users))
	}
	if entry := newestAudit(t, s); entry.Seq != 1 || entry.Action != "user.create" || entry.Detail != "operator" {
		t.Errorf("the audit log has %+v", entry)
	}
}

func TestPasswordsAndAddressesThatAreRefused(t *testing.T) {
	s := storagetest.Open(t)
	for password, good := range map[string]bool{
		"": false, "123456789": false, strings.Repeat("ä", 9): false, strings.Repeat("x", 1025): false, "a\x00bcdefghij": false,
		"\xff\xfe234567890": false, strings.Repeat("ä", 10): true, strings.Repeat("x", 1024): true,
	} {
		// An organisation that there is not keeps a good one from being made.
		err := errOf(s.CreateUser(t.Context(), storage.NewUser{Email: "a@example.org", Password: password, Role: storage.MemberRole, Org: "none"}))
		if want := map[bool]error{true: storage.ErrOrgNotFound, false: storage.ErrWeakPassword}[good]; !errors.Is(err, want) {
			t.Errorf("a password of %d bytes: got %v, want %v", len(password), err, want)
		}
	}
	for _, email := range []string{
		"", "a", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\tc", "a@b\n", "a@b\x00", "a\u200b@b", "a\u202e@b", "a@b\xff", strings.Repeat("a", 250) + "@b.de",
	} {
		if strings.TrimSpace(email) == "a@b" {
			continue // blanks around it are no fault
		}
		err := errOf(s.CreateUser(t.Context(), storage.NewUser{Email: email, Password: "short", Role: storage.OperatorRole}))
		if !errors.Is(err, storage.ErrInvalidEmail) {
			t.Errorf("%q: got %v, want ErrInvalidEmail", email, err)
		}
	}
}

func TestEmailIsUniqueInAnyCase(t *testing.T) {
	s := storagetest.Open(t)
	user := must(s.SetUp(t.Context(), " Änne@Example.ORG ", goodPassword))(t)
	if user.Email != "änne@example.org" {
		t.Errorf("the address is %q", user.Email)
	}
	err := errOf(s.CreateUser(t.Context(), storage.NewUser{Email: "ÄNNE@example.org", Password: goodPassword, Role: storage.OperatorRole}))
	if !errors.Is(err, storage.ErrNameTaken) {
		t.Errorf("got %v, want ErrNameTaken", err)
	}
	for _, ref := range []string{"ÄNNE@EXAMPLE.ORG", user.ID.String()} {
		if found, err := s.FindUser(t.Context(), ref); err != nil || found.ID != user.ID {
			t.Errorf("%s: %+v, %v", ref, found, err)
		}
	}
	ctx := t.Context()
	if _, err := s.SignIn(ctx, "ÄNNE@EXAMPLE.ORG", goodPassword, ""); err != nil {
		t.Errorf("SignIn: %v", err)
	}
	if _, err := s.SignIn(ctx, user.ID.String(), goodPassword, ""); !errors.Is(err, storage.ErrSignInRefused) {
		t.Errorf("SignIn with an ID: got %v, want ErrSignInRefused", err)
	}
}

func TestTheLastOperatorStays(t *testing.T) {
	s := storagetest.Open(t)
	first := must(s.SetUp(t.Context(), "first@example.org", goodPassword))(t)
	org, member, operator, yes, no := storage.DefaultOrg, storage.MemberRole, storage.OperatorRole, true, false
	second := must(s.CreateUser(t.Context(), storage.NewUser{
		Email: "second@example.org", Password: goodPassword, Role: member, Org: org,
	}))(t)
	change := func(user storage.User, c storage.UserChange) error {
		return errOf(s.ChangeUser(t.Context(), user.ID.String(), c))
	}
	refused := func(when string) {
		t.Helper()
		for name, err := range map[string]error{
			"demoted":  change(first, storage.UserChange{Role: &member, Org: &org}),
			"disabled": change(first, storage.UserChange{Disabled: &yes}),
			"deleted":  errOf(s.DeleteUser(t.Context(), first.Email)),
		} {
			if !errors.Is(err, storage.ErrLastOperator) {
				t.Errorf("%s, %s: got %v, want ErrLastOperator", when, name, err)
			}
		}
	}
	refused("beside a member")
	if err := errors.Join(change(second, storage.UserChange{Role: &operator}), change(second, storage.UserChange{Disabled: &yes})); err != nil {
		t.Fatal(err)
	}
	refused("beside a disabled operator")
	if err := errors.Join(change(second, storage.UserChange{Disabled: &no}), change(first, storage.UserChange{Role: &member, Org: &org})); err != nil {
		t.Errorf("beside an operator: %v", err)
	}
	// Others can be changed all the same.
	if err := errors.Join(change(first, storage.UserChange{Disabled: &yes}), errOf(s.DeleteUser(t.Context(), first.Email))); err != nil {
		t.Error(err)
	}
	if err := errOf(s.DeleteUser(t.Context(), second.Email)); !errors.Is(err, storage.ErrLastOperator) {
		t.Errorf("the only user: got %v, want ErrLastOperator", err)
	}
}

func TestGenerationEndsSessions(t *testing.T) {
	s := storagetest.Open(t)
	user := must(s.SetUp(t.Context(), "one@example.org", goodPassword))(t)
	must(s.CreateUser(t.Context(), storage.NewUser{Email: "two@example.org", Password: goodPassword, Role: storage.OperatorRole}))(t)
	yes, no, member, org := true, false, storage.MemberRole, storage.DefaultOrg
	another := "yet another one"
	asSelf := func(current, next string) func(context.Context) (storage.User, error) {
		return func(ctx context.Context) (storage.User, error) {
			actor, err := s.UserActor(ctx, user.ID, user.Generation, "")
			if err != nil {
				return storage.User{}, err
			}
			return s.ChangePassword(storage.WithActor(ctx, actor), current, next)
		}
	}
	change := func(c storage.UserChange) func(context.Context) (storage.User, error) {
		return func(ctx context.Context) (storage.User, error) { return s.ChangeUser(ctx, user.Email, c) }
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) (storage.User, error)
		ends bool
	}{
		{"enabled that was enabled", change(storage.UserChange{Disabled: &no}), false},
		{"another role", change(storage.UserChange{Role: &member, Org: &org}), false},
		{"disabled", change(storage.UserChange{Disabled: &yes}), true},
		{"enabled", change(storage.UserChange{Disabled: &no}), true},
		{"a new password", change(storage.UserChange{Password: &another}), true},
		{"a new password of one's own", asSelf(another, goodPassword), true},
	} {
		before := user
		after, err := step.do(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		_, err = s.UserActor(t.Context(), user.ID, before.Generation, "")
		if ended := errors.Is(err, storage.ErrSignInRefused); ended != step.ends || !ended && err != nil {
			t.Errorf("%s: the session has %v", step.name, err)
		}
		if actor, err := s.UserActor(t.Context(), user.ID, after.Generation, "from"); !after.Disabled && (err != nil || actor.Role != after.Role || actor.From != "from") {
			t.Errorf("%s: a new session: %+v, %v", step.name, actor, err)
		}
		user = after
	}
	if _, err := s.DeleteUser(t.Context(), user.Email); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UserActor(t.Context(), user.ID, user.Generation, ""); !errors.Is(err, storage.ErrSignInRefused) {
		t.Errorf("deleted: got %v, want ErrSignInRefused", err)
	}
}
