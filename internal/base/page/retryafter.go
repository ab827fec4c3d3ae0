package page

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns how long the answer's Retry-After field asks clients to wait: a number of seconds, or a date (RFC
// 9110, 10.2.3). It returns 0 if there is no such field, or nothing that can be read.
func (r *Response) RetryAfter(now time.Time) time.Duration {
	field := strings.TrimSpace(r.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(field, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, math.MaxInt64/uint64(time.Second))) * time.Second
	}
	if date, err := http.ParseTime(field); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
