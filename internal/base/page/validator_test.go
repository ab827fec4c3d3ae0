package page

import (
	"net/http"
	"testing"
)

func TestLastModified(t *testing.T) {
	const noon, later, before = "Mon, 30 Nov 2026 12:00:00 GMT", "Mon, 30 Nov 2026 12:00:01 GMT", "Mon, 30 Nov 2026 11:59:59 GMT"
	for _, c := range []struct {
		modified, date string
		used           bool
	}{
		{noon, later, true},
		{noon, noon, false}, // it may change within this second
		{noon, before, false},
		{noon, "", true},
		{noon, "now", true},
		{"", noon, false},
		{"yesterday", noon, false},
		{"Thu, 01 Jan 1970 00:00:00 GMT", noon, false},
	} {
		got := LastModified(http.Header{"Last-Modified": {c.modified}, "Date": {c.date}})
		if got.IsZero() == c.used || c.used && got.Format(http.TimeFormat) != c.modified {
			t.Errorf("modified %q, sent %q: %v", c.modified, c.date, got)
		}
	}
}
