package page

import (
	"net/http"
	"time"
)

// LastModified returns the Last-Modified of a response header, if a later request may ask whether the page has changed
// since; otherwise the zero time. If the page was modified in the second in which it was sent, it may have changed again
// in that second, without another Last-Modified (RFC 9110, section 8.8.2.2).
func LastModified(h http.Header) time.Time {
	field := h.Get("Last-Modified")
	if field == "" { // an error would allocate
		return time.Time{}
	}
	modified, err := http.ParseTime(field)
	if err != nil || modified.Unix() <= 0 {
		return time.Time{}
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil && sent.Sub(modified) < time.Second {
		return time.Time{}
	}
	return modified
}
