package wire

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// longestAfter keeps absurd demands within what a duration can hold.
const longestAfter = 365 * 24 * time.Hour

// askedFor is how long an answer asks to wait; 0 when it does not.
func askedFor(h http.Header, now time.Time) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := number(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), longestAfter))
	}
	return 0
}

func number(value string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	if n > float64(longestAfter/unit) {
		return longestAfter, true
	}
	return time.Duration(n * float64(unit)), true
}
