package page

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"":                              0,
		"soon":                          0,
		"-5":                            0,
		"1.5":                           0,
		" 120 ":                         2 * time.Minute,
		"1000000000":                    1e9 * time.Second,
		"10000000000":                   9223372036 * time.Second, // the maximum of a Duration
		"99999999999999999999999999":    9223372036 * time.Second,
		"Sun, 22 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 22 Nov 2026 11:00:00 GMT": 0,
		"Fri, 01 Jan 2100 00:00:00 GMT": time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now),
	} {
		r := Response{Header: http.Header{"Retry-After": {field}}}
		if got := r.RetryAfter(now); got != want {
			t.Errorf("%q is %v, want %v", field, got, want)
		}
	}
}
