package page

import (
	"container/list"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-faster/errors"
)

// Passwords can be tried freeTries times from one network and for one email
// address; each further try has to wait twice as long as the one before. The
// wait for an address of a person is short at most, because anybody can cause
// it; still there are fewer than 1,500 tries in a day then.
const (
	freeTries      = 10
	firstWait      = 2 * time.Second
	longestForIP   = 15 * time.Minute
	longestForName = time.Minute
	// forgetAfter is how long after the last try it counts no more.
	forgetAfter = time.Hour
	// mostTried bounds the memory: 10,000 names and networks, the latest ones.
	mostTried = 10_000
)

// ErrTooManySignIns is returned for a try to sign in that came too early.
var ErrTooManySignIns = errors.New("too many tries to sign in")

// slowDown counts tries of passwords. It may be used concurrently.
type slowDown struct {
	now func() time.Time

	mu     sync.Mutex
	byKey  map[string]*list.Element
	latest list.List // Of *tries, the latest in front.
}

// tries are those of one network or for one email address.
type tries struct {
	key   string
	count int
	last  time.Time
	// next is when the next one may be made.
	next time.Time
}

func newSlowDown(now func() time.Time) *slowDown {
	return &slowDown{now: now, byKey: map[string]*list.Element{}}
}

// tryKeys are what a try counts for. A peer on this machine is most often a
// proxy, which everybody comes through, and so does not count as a network.
func tryKeys(email, from string) []string {
	keys := []string{"name " + strings.ToLower(strings.TrimSpace(email))}
	addr, err := netip.ParseAddr(from)
	if err != nil {
		return keys
	}
	if addr = addr.Unmap().WithZone(""); addr.IsLoopback() {
		return keys
	}
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64 // A network of its own is what one customer gets.
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return keys
	}
	return append(keys, "network "+network.String())
}

// take counts a try before it is made, so that many at once are no way around.
// When it is too early, nothing is counted, and it returns how long to wait.
func (s *slowDown) take(email, from string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, wait := s.now(), time.Duration(0)
	keys := tryKeys(email, from)
	for _, key := range keys {
		if element, found := s.byKey[key]; found {
			wait = max(wait, element.Value.(*tries).next.Sub(now))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, key := range keys {
		s.count(key, now)
	}
	return 0
}

func (s *slowDown) count(key string, now time.Time) {
	element, found := s.byKey[key]
	if !found {
		element = s.latest.PushFront(&tries{key: key})
		s.byKey[key] = element
	}
	s.latest.MoveToFront(element)
	t := element.Value.(*tries)
	if now.Sub(t.last) > forgetAfter {
		t.count = 0
	}
	t.count++
	t.last = now
	t.next = now.Add(waitAfter(t.count, key))
	for s.latest.Len() > mostTried {
		s.forget(s.latest.Back())
	}
}

func waitAfter(count int, key string) time.Duration {
	if count < freeTries {
		return 0
	}
	longest := longestForIP
	if strings.HasPrefix(key, "name ") {
		longest = longestForName
	}
	if count-freeTries > 20 {
		return longest
	}
	return min(firstWait<<(count-freeTries), longest)
}

// succeeded forgets the tries for an email address: they were its owner's. Those
// of the network stay but for this one, so that nobody's own password makes room
// for tries of other people's.
func (s *slowDown) succeeded(email, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range tryKeys(email, from) {
		element, found := s.byKey[key]
		switch {
		case !found:
		case i == 0:
			s.forget(element)
		default:
			t := element.Value.(*tries)
			t.count--
			t.next = t.last
		}
	}
}

func (s *slowDown) forget(element *list.Element) {
	delete(s.byKey, element.Value.(*tries).key)
	s.latest.Remove(element)
}

// mayTry counts a try of a password, or says when there may be one.
func (a *App) mayTry(w http.ResponseWriter, email, from string) error {
	wait := a.slow.take(email, from)
	if wait <= 0 {
		return nil
	}
	seconds := int((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	told := fmt.Sprintf("There were many tries to sign in. Wait %s and try again.", several(seconds, "second"))
	if seconds >= 120 {
		told = fmt.Sprintf("There were many tries to sign in. Wait %s and try again.", several((seconds+59)/60, "minute"))
	}
	return errors.Join(ErrTooManySignIns, refuse(http.StatusTooManyRequests, told))
}
