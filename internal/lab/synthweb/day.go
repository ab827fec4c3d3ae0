package synthweb

import (
	"net/http"
	"strconv"
	"time"
)

// How a web lives: of its pages that have no children some come and go, and of all some change.
const (
	transientPerMille = 400 // pages in a thousand, of those without children, that are not always there
	transientCycle    = 20  // after which one is as it was
	transientPresent  = 14  // of these, that it is there
	changingPerMille  = 300 // pages in a thousand that change
	maxUnchangedDays  = 7   // days that one of these stays the same at most
)

// firstDay is when pages changed last that never change.
var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// alive reports whether a page is there on the web's day, and all that is made of it.
func (w *Web) alive(r Ref) bool {
	there, _ := w.presence(r)
	return there
}

// presence reports whether a resource is there on the web's day, and since which day it is or is not; 0 where that never
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

// edition counts a page's changes of text up to the web's day; the last was on the day since.
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

// changed is the day of a page's last change: of its text, or because what it names came or went.
func (w *Web) changed(r Ref) int {
	r = r.shown()
	_, last := w.cfg.edition(r)
	for _, l := range w.permanentLinks(nil, r) {
		_, since := w.presence(l.Ref)
		last = max(last, since)
	}
	return last
}

// A version tells a page's states from each other. Zero fields are not said.
type version struct {
	etag     string
	modified string
}

// version is what a web of days says of a page: some hosts have an ETag, some the time of the last change, some both.
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

// matches reports whether a request's condition says that the client has this version.
func (v *version) matches(r *request) bool {
	if len(r.noneMatch) > 0 {
		return string(r.noneMatch) == v.etag
	}
	return v.modified != "" && string(r.since) == v.modified
}
