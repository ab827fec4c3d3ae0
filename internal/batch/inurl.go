package batch

import (
	"bytes"
	"cmp"
	"time"

	"kumo/internal/base/page"
)

// An InURL is a URL to be fetched in a round.
type InURL struct {
	Collection, URL string // the key; the URL is canonical

	Depth     int // hops from a seed
	Redirects int // in a row that led here
	Seed      bool
	From      string // the page that named it, or the URL that redirects here; "" for a seed
	// Robots is the origin ("https://example.com") whose robots.txt redirects to this URL; "" for an ordinary one.
	Robots string

	// Known says that it was fetched on an earlier day, and what is had of that.
	Known    bool
	Due      bool // its time has come again; a known URL that is not due is fetched only as a seed
	ETag     string
	Modified time.Time // Last-Modified
	Digest   page.Digest
}

// Key is the record's key.
func (in *InURL) Key() []byte { return Key(in.Collection, in.URL) }

// Append appends the record's value.
func (in *InURL) Append(b []byte) []byte {
	w := startValue(b, KindInURL)
	w.Uint(uint64(in.Depth))
	w.Uint(uint64(in.Redirects))
	w.Uint(flags(in.Seed, in.Known, in.Due))
	w.String(in.From)
	w.String(in.Robots)
	if in.Known {
		w.String(in.ETag)
		putTime(&w, in.Modified)
		putArray(&w, in.Digest)
	}
	return w
}

// ReadInURL reads a record.
func ReadInURL(key, value []byte) (in InURL, err error) {
	r, err := openRecord(key, value, KindInURL, &in.Collection, &in.URL)
	if err != nil {
		return in, err
	}
	in.Depth, in.Redirects = count(r.Uint()), count(r.Uint())
	f := r.Uint()
	in.Seed, in.Known, in.Due = f&1 != 0, f&2 != 0, f&4 != 0
	in.From, in.Robots = r.String(), r.String()
	if in.Known {
		in.ETag, in.Modified, in.Digest = r.String(), getTime(r), getArray[page.Digest](r)
	}
	return in, checkRead(r, KindInURL)
}

// count is a number that no sound record has larger.
func count(n uint64) int { return int(min(n, 1<<30)) }

// merge takes into the record what another one of the same URL says: the nearer to a seed counts, and what is known
// from whichever knows it. It comes to the same in whatever order records are merged.
func (in *InURL) merge(o *InURL) {
	known := in
	if o.Known && (!in.Known || bytes.Compare(o.Digest[:], in.Digest[:]) < 0) {
		known = o
	}
	m := *in
	if cmp.Or(cmp.Compare(o.Depth, in.Depth), cmp.Compare(o.Redirects, in.Redirects), cmp.Compare(o.From, in.From)) < 0 {
		m = *o
	}
	m.Seed, m.Due = in.Seed || o.Seed, in.Due || o.Due
	m.Known, m.ETag, m.Modified, m.Digest = known.Known, known.ETag, known.Modified, known.Digest
	*in = m
}
