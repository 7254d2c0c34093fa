package storage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestKeyForm(t *testing.T) {
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	key, secret := storagetest.MustKey(t, s, agent)
	if len(secret) != 52 || !strings.HasPrefix(secret, "ak_") || !strings.HasPrefix(secret, key.Prefix) {
		t.Errorf("secret of %d characters, prefix %q", len(secret), key.Prefix)
	}
	caller, err := s.Authenticate(t.Context(), secret)
	if err != nil || caller.AgentID != agent.ID || caller.OrgID != agent.OrgID || caller.KeyID != key.ID {
		t.Errorf("Authenticate: %+v, %v", caller, err)
	}
}

func TestMalformedKeysNeverReachTheStore(t *testing.T) {
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	_, secret := storagetest.MustKey(t, s, agent)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A closed store cannot be asked: what still gets ErrInvalidKey was not.
	if _, err := s.Authenticate(t.Context(), secret); !errors.Is(err, storage.ErrUnavailable) {
		t.Fatalf("the right key over a closed store: got %v, want ErrUnavailable", err)
	}
	bad := []string{
		"", "ak_", "x", secret[:51], secret + "x", strings.ToLower(secret), strings.ToUpper(secret),
		" " + secret, secret + " ", "ak-" + secret[3:], strings.Repeat("a", 52), "ak_" + strings.Repeat("ä", 24) + "x",
	}
	for i := range secret {
		other := byte('0')
		if secret[i] == other {
			other = '1'
		}
		bad = append(bad, secret[:i]+string(other)+secret[i+1:])
	}
	for _, b := range bad {
		if _, err := s.Authenticate(t.Context(), b); !errors.Is(err, storage.ErrInvalidKey) {
			t.Errorf("%q: got %v, want ErrInvalidKey", b, err)
		}
	}
}

func TestKeyLife(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := storagetest.OpenFile(t, filepath.Join(t.TempDir(), "agentrun.db"), storage.Options{Now: func() time.Time { return now }})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	key, secret := storagetest.MustExpiringKey(t, s, agent, time.Hour)
	works := func() bool {
		t.Helper()
		_, err := s.Authenticate(t.Context(), secret)
		if err != nil && !errors.Is(err, storage.ErrInvalidKey) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !works() {
		t.Error("a new key is refused")
	}
	if _, err := s.SetKeyDisabled(t.Context(), key.ID, true); err != nil || works() {
		t.Errorf("a disabled key: %v, accepted = %v", err, works())
	}
	if _, err := s.SetKeyDisabled(t.Context(), key.ID, false); err != nil || !works() {
		t.Errorf("an enabled key: %v, accepted = %v", err, works())
	}
	now = now.Add(time.Hour)
	if works() {
		t.Error("an expired key is accepted")
	}
	now = now.Add(-time.Minute)
	if _, err := s.DeleteKey(t.Context(), key.ID); err != nil || works() {
		t.Errorf("a deleted key: %v, accepted = %v", err, works())
	}
	if _, err := s.DeleteKey(t.Context(), key.ID); !errors.Is(err, storage.ErrKeyNotFound) {
		t.Errorf("deleted twice: got %v, want ErrKeyNotFound", err)
	}
	if keys, err := s.Keys(t.Context(), "echo"); err != nil || len(keys) != 0 {
		t.Errorf("Keys: %+v, %v", keys, err)
	}
	if _, _, err := s.CreateKey(t.Context(), "echo", "k", -time.Second); !errors.Is(err, storage.ErrInvalidExpiry) {
		t.Errorf("a negative life: got %v, want ErrInvalidExpiry", err)
	}
}

func TestKeyDisabledBetweenCheckAndCreate(t *testing.T) {
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	caller := storagetest.MustCaller(t, s, agent)
	if err := s.CheckCreate(t.Context(), caller, agent.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetKeyDisabled(t.Context(), caller.KeyID, true); err != nil {
		t.Fatal(err)
	}
	id, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateRun(t.Context(), storage.NewRun{ID: id, Caller: caller, Template: agent.ID, Name: "run"})
	if !errors.Is(err, storage.ErrInvalidKey) {
		t.Errorf("got %v, want ErrInvalidKey", err)
	}
}

func TestSecretIsNotOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentrun.db")
	s := storagetest.OpenFile(t, path, storage.Options{})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	key, secret := storagetest.MustKey(t, s, agent)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file, []byte(key.Prefix)) {
		t.Fatal("the readable prefix is not in the file: the search proves nothing")
	}
	if bytes.Contains(file, []byte(secret[:16])) {
		t.Error("the secret is in the file")
	}
}
