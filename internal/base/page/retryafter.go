package page

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter returns the delay of the Retry-After field: a number of seconds, or a date (RFC 9110, 10.2.3). It returns
// 0 if the field is missing or invalid.
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
