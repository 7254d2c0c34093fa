package page

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// clock is a clock that moves when it is told to.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newTestSlowDown() (*slowDown, *clock) {
	c := &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return newSlowDown(c.now), c
}

func TestTriesForANameAreSlowedDown(t *testing.T) {
	s, c := newTestSlowDown()
	from := func(i int) string { return fmt.Sprintf("192.0.2.%d", i) }
	for i := range freeTries {
		if wait := s.take("ada@example.org", from(i)); wait != 0 {
			t.Fatalf("try %d waits %s", i, wait)
		}
	}
	wait := s.take(" ADA@example.org", from(100))
	if wait != firstWait {
		t.Errorf("the next try waits %s", wait)
	}
	if other := s.take("bob@example.org", from(100)); other != 0 {
		t.Errorf("another name waits %s", other)
	}
	c.at = c.at.Add(wait)
	for i, want := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		if wait := s.take("ada@example.org", from(101+i)); wait != 0 {
			t.Fatalf("a try that waited waits %s", wait)
		}
		if wait := s.take("ada@example.org", from(200)); wait != want {
			t.Errorf("then it waits %s, want %s", wait, want)
		}
		c.at = c.at.Add(want)
	}
	s.take("ada@example.org", from(201))
	s.succeeded("Ada@example.org", from(201))
	if wait := s.take("ada@example.org", from(201)); wait != 0 {
		t.Errorf("after a success it waits %s", wait)
	}
}

func TestTriesOfANetworkAreSlowedDown(t *testing.T) {
	for name, from := range map[string]func(i int) string{
		"an IPv4 address": func(int) string { return "192.0.2.1" },
		"an IPv6 network": func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i) },
		"a mapped one":    func(i int) string { return []string{"192.0.2.1", "::ffff:192.0.2.1"}[i%2] },
	} {
		s, c := newTestSlowDown()
		email := func(i int) string { return fmt.Sprintf("user%d@example.org", i) }
		for i := range freeTries {
			if wait := s.take(email(i), from(i)); wait != 0 {
				t.Fatalf("%s: try %d waits %s", name, i, wait)
			}
		}
		if wait := s.take(email(100), from(100)); wait != firstWait {
			t.Errorf("%s waits %s", name, wait)
		}
		if wait := s.take(email(100), "2001:db8:1:3::1"); wait != 0 {
			t.Errorf("%s: another network waits %s", name, wait)
		}
		// Nobody's own password makes room for tries of other people's.
		for i := range 40 {
			c.at = c.at.Add(longestForIP)
			s.take("mallory@example.org", from(i))
			s.succeeded("mallory@example.org", from(i))
			s.take(email(i), from(i))
		}
		if wait := s.take(email(101), from(0)); wait != longestForIP {
			t.Errorf("%s, much later: it waits %s", name, wait)
		}
		c.at = c.at.Add(forgetAfter + time.Second)
		for i := range freeTries {
			if wait := s.take(email(200+i), from(i)); wait != 0 {
				t.Errorf("%s, after all is forgotten: try %d waits %s", name, i, wait)
			}
		}
	}
}

func TestAProxyIsNoNetwork(t *testing.T) {
	s, _ := newTestSlowDown()
	for i := range 100 {
		if wait := s.take(strconv.Itoa(i), []string{"127.0.0.1", "::1", "127.1.2.3"}[i%3]); wait != 0 {
			t.Fatalf("try %d waits %s", i, wait)
		}
	}
}

func TestManyTriesAtOnceAreNoWayAround(t *testing.T) {
	s, _ := newTestSlowDown()
	var group sync.WaitGroup
	allowed := make(chan bool, 200)
	for range cap(allowed) {
		group.Go(func() { allowed <- s.take("ada@example.org", "192.0.2.1") == 0 })
	}
	group.Wait()
	close(allowed)
	made := 0
	for ok := range allowed {
		if ok {
			made++
		}
	}
	if made != freeTries {
		t.Errorf("%d tries at once, want %d", made, freeTries)
	}
}

func TestTriesTakeBoundedMemory(t *testing.T) {
	s, _ := newTestSlowDown()
	for i := range 3 * mostTried {
		s.take(strconv.Itoa(i), fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff))
	}
	if len(s.byKey) != mostTried || s.latest.Len() != mostTried {
		t.Errorf("%d and %d are kept, want %d", len(s.byKey), s.latest.Len(), mostTried)
	}
}

func TestSignInIsSlowedDown(t *testing.T) {
	s := newSite(t)
	s.mustUser(testEmail, "")
	b := s.newBrowser()
	for range freeTries {
		b.post("/sign-in", "email", testEmail, "password", "wrong password").want(t, http.StatusForbidden)
	}
	// The right password is not tried either: otherwise it could be told by that.
	got := b.post("/sign-in", "email", testEmail, "password", testPassword)
	got.want(t, http.StatusTooManyRequests, "There were many tries to sign in. Wait ", `value="`+testEmail+`"`)
	after, err := strconv.Atoi(got.Header.Get("Retry-After"))
	if err != nil || after < 1 || after > int(firstWait/time.Second) {
		t.Fatalf("Retry-After: %q", got.Header.Get("Retry-After"))
	}
	s.forward(time.Duration(after) * time.Second)
	b.post("/sign-in", "email", testEmail, "password", testPassword).wantRedirect(t, "/")
	for range freeTries {
		b.post("/account/password", "current", "wrong password", "new", "another password", "again", "another password").want(t, http.StatusForbidden)
	}
	b.post("/account/password", "current", testPassword, "new", "another password", "again", "another password").want(t, http.StatusTooManyRequests)
}
