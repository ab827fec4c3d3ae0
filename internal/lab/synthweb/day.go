package synthweb

import (
	"net/http"
	"strconv"
	"time"
)

// How a web changes: some of its pages without children come and go, and some of all pages change.
const (
	transientPerMille = 400 // childless pages per 1,000 that come and go
	transientCycle    = 20  // days after which the state of such a page repeats
	transientPresent  = 14  // days of a cycle on which the page is present
	changingPerMille  = 300 // pages per 1,000 that change
	maxUnchangedDays  = 7   // maximum number of days between two changes of such a page
)

// firstDay is the last modification time of pages that never change.
var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// alive reports whether a page exists on the web's day, together with its companions.
func (w *Web) alive(r Ref) bool {
	there, _ := w.presence(r)
	return there
}

// presence reports whether a resource exists on the web's day, and since which day it does or does not; 0 if that never
// changes.
func (w *Web) presence(r Ref) (there bool, since int) {
	h := &w.hosts[r.Host]
	if w.cfg.Day == 0 || r.N == 0 || h.dead || r.Kind >= Image || int(r.N)*fanout+1 < h.pages {
		return true, 0
	}
	d := w.cfg.dice(r.Host, aboutLife, r.N)
	if !d.Chance(transientPerMille) {
		return true, 0
	}
	day := (w.cfg.Day + d.Below(transientCycle)) % transientCycle
	if day < transientPresent {
		return true, max(0, w.cfg.Day-day)
	}
	return false, max(0, w.cfg.Day-(day-transientPresent))
}

// edition returns the number of changes of a page's text up to the web's day, and the day of the last one.
func (c *Config) edition(r Ref) (edition, since int) {
	if c.Day == 0 {
		return 0, 0
	}
	if r.N == 0 && r.Kind == Page {
		return c.Day, c.Day
	}
	d := c.dice(r.Host, aboutChange, r.N)
	if !d.Chance(changingPerMille) {
		return 0, 0
	}
	stays := 1 + d.Below(maxUnchangedDays)
	day := c.Day + d.Below(stays)
	return day / stays, max(0, c.Day-day%stays)
}

// changed returns the day of a page's last change: of its text, or because a resource that it links to came or went.
func (w *Web) changed(r Ref) int {
	r = r.shown()
	_, last := w.cfg.edition(r)
	for _, l := range w.permanentLinks(nil, r) {
		_, since := w.presence(l.Ref)
		last = max(last, since)
	}
	return last
}

// A version identifies a state of a page. Zero fields are not sent.
type version struct {
	etag     string
	modified string
}

// version returns the validators of a page in a web with days. Some hosts send an ETag, some Last-Modified, some both.
func (w *Web) version(r Ref) (v version) {
	if w.cfg.Day == 0 {
		return v
	}
	day := w.changed(r)
	if r.Host%3 != 1 {
		v.etag = `"` + strconv.Itoa(int(r.N)) + "-" + strconv.Itoa(day) + `"`
	}
	if r.Host%3 != 0 {
		v.modified = firstDay.AddDate(0, 0, day).Format(http.TimeFormat)
	}
	return v
}

// matches reports whether a request's condition matches this version.
func (v *version) matches(r *request) bool {
	if len(r.noneMatch) > 0 {
		return string(r.noneMatch) == v.etag
	}
	return v.modified != "" && string(r.since) == v.modified
}
