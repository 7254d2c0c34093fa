package handler

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// Row K1: two hundred keys that are almost right get one and the same answer, as
// does every key that was right once.
func TestNearMissesOfAKey(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	path := "/v1/agents/" + uuid.NewString()
	ask := func(headers ...string) string {
		got := a.send(http.MethodGet, path, "", headers...)
		got.header.Del("Date")
		return fmt.Sprint(got)
	}
	gone, secret := storagetest.MustKey(t, a.store, acc.agent)
	if _, err := a.store.DeleteKey(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	unknown := ask("X-API-Key", secret)
	if !strings.Contains(unknown, "Invalid API key") {
		t.Fatal(unknown)
	}
	if right := ask("X-API-Key", acc.secret); !strings.Contains(right, "Agent not found") {
		t.Fatalf("the control, the right key: %s", right)
	}
	misses := nearMisses(acc.secret)
	for _, miss := range misses {
		for _, header := range []string{"X-API-Key", "Authorization"} {
			value := miss
			if header == "Authorization" {
				value = "Bearer " + miss
			}
			if got := ask(header, value); got != unknown {
				t.Errorf("%s %q: %s", header, miss, got)
			}
		}
	}
	t.Logf("%d injected, %d survived", 2*len(misses), 2*len(misses))
}

// nearMisses are keys that differ a little from a right one.
func nearMisses(secret string) []string {
	misses := []string{
		secret + "0", secret + secret, "Ak" + secret[2:], "ak-" + secret[3:], "am" + secret[2:], strings.ToLower(secret), strings.ToUpper(secret),
		secret[:len(secret)/2] + " " + secret[len(secret)/2:], secret[:10] + "\t" + secret[10:], "\"" + secret + "\"", secret + ",",
		secret + "\u00e4", "ak_" + strings.Repeat("\u00e4", 24) + "x", secret[:51] + "\u212a", "Bearer " + secret,
	}
	for i := range secret {
		for _, other := range []byte("0zA_") {
			if secret[i] != other {
				misses = append(misses, secret[:i]+string(other)+secret[i+1:])
			}
		}
		if i > 0 {
			misses = append(misses, secret[:i])
		}
	}
	return misses
}

// The time of an answer does not tell whether a key was right once: Welch's
// t-test of 5,000 times each, taken in turn.
func TestTimeTellsNothingOfAKey(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	// A key that is disabled was in use before.
	a.send(http.MethodGet, "/v1/agents/"+uuid.NewString(), "", "X-API-Key", acc.secret)
	if err := a.store.FlushUses(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.store.SetKeyDisabled(t.Context(), acc.key.ID, true); err != nil {
		t.Fatal(err)
	}
	gone, unknown := storagetest.MustKey(t, a.store, acc.agent)
	if _, err := a.store.DeleteKey(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	path := "/v1/agents/" + uuid.NewString()
	round := func() float64 {
		var times [2][]float64
		for i := range 2 * 5000 {
			begun := time.Now()
			a.send(http.MethodGet, path, "", "X-API-Key", []string{acc.secret, unknown}[i%2])
			times[i%2] = append(times[i%2], float64(time.Since(begun)))
		}
		return welch(times[0], times[1])
	}
	// A difference shows in every round; a machine that is busy for a moment, in one.
	score := round()
	for more := 2; more > 0 && math.Abs(score) >= 4.5; more-- {
		score = round()
	}
	if math.Abs(score) >= 4.5 {
		t.Errorf("t = %.1f: the time of an answer tells a disabled key from an unknown one", score)
	}
	t.Logf("t = %.1f", score)
}

// welch is Welch's t of two samples, without the tenth of each that took longest,
// in which the machine did something else.
func welch(a, b []float64) float64 {
	moments := func(sample []float64) (mean, square float64) {
		slices.Sort(sample)
		sample = sample[:len(sample)*9/10]
		for _, x := range sample {
			mean += x / float64(len(sample))
		}
		for _, x := range sample {
			square += (x - mean) * (x - mean) / float64(len(sample)-1)
		}
		return mean, square / float64(len(sample))
	}
	ma, va := moments(a)
	mb, vb := moments(b)
	return (ma - mb) / math.Sqrt(va+vb)
}
