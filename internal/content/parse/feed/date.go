package feed

import (
	"net/mail"
	"time"
)

// dateLayouts are the formats of the W3C note on dates and times, and frequent variants.
var dateLayouts = []string{"2006-01-02", time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04", "2006-01", "2006"}

// date parses a date of a sitemap, Atom or RSS; zero if it is not valid.
func date(text string) time.Time {
	if len(text) > 64 {
		return time.Time{}
	}
	for _, form := range dateLayouts {
		if len(form) < len("2006-01-02T") && len(text) != len(form) {
			continue
		}
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC()
		}
	}
	if t, err := mail.ParseDate(text); err == nil {
		return t.UTC()
	}
	return time.Time{}
}
