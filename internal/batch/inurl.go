package batch

import (
	"bytes"
	"cmp"
	"time"

	"kumo/internal/base/page"
)

// An InURL is a URL to fetch in a round.
type InURL struct {
	Collection, URL string // the key; the URL is canonical

	Depth     int // hops from a seed
	Redirects int // consecutive redirects that led here
	Seed      bool
	From      string // page with the link, or URL that redirects here; "" for a seed
	// Robots is the origin ("https://example.com") whose robots.txt redirects to this URL; "" for an ordinary one.
	Robots string

	// Known reports whether it was fetched on an earlier day; the fields below are from then.
	Known    bool
	Due      bool // time for a recrawl; a known URL that is not due is fetched only as a seed
	ETag     string
	Modified time.Time // Last-Modified
	Digest   page.Digest
}

// Key returns the record's key.
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

// ReadInURL decodes a record.
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

// count limits a decoded number to what valid records contain.
func count(n uint64) int { return int(min(n, 1<<30)) }

// merge merges another record of the same URL. The one nearer to a seed wins; the known state is taken from either. The
// result does not depend on the order of merging.
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
