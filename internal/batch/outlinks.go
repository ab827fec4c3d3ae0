package batch

import "time"

// A LinkType is the kind of OutLinks.
type LinkType uint8

// The types.
const (
	PageLinks    LinkType = 0 // links of a page; empty if it has none, failed, or was refused by a rule
	RedirectLink LinkType = 1 // the only entry is the redirect target
)

// OutLinks contains the links of a requested URL. Every requested URL has a record, so that it is not fetched again.
type OutLinks struct {
	Collection, URL string // the key

	Type  LinkType
	Time  time.Time // when the URL was fetched
	Links []string  // canonical and unique, in page order
	// Depth, Redirects and Seed are those of the URL; for its links, see [OutLinks.To].
	Depth     int
	Redirects int
	Seed      bool
}

// Key returns the record's key.
func (o *OutLinks) Key() []byte { return Key(o.Collection, o.URL) }

// Append appends the record's value.
func (o *OutLinks) Append(b []byte) []byte {
	w := startValue(b, KindOutLinks)
	w.Byte(byte(o.Type))
	putTime(&w, o.Time)
	w.Uint(uint64(o.Depth))
	w.Uint(uint64(o.Redirects))
	w.Bool(o.Seed)
	w.Uint(uint64(len(o.Links)))
	for _, l := range o.Links {
		w.String(l)
	}
	return w
}

// ReadOutLinks decodes a record.
func ReadOutLinks(key, value []byte) (o OutLinks, err error) {
	r, err := openRecord(key, value, KindOutLinks, &o.Collection, &o.URL)
	if err != nil {
		return o, err
	}
	o.Type, o.Time = LinkType(r.Byte()), getTime(r)
	o.Depth, o.Redirects, o.Seed = count(r.Uint()), count(r.Uint()), r.Bool()
	if n := r.Uint(); n > uint64(len(r.Rest)) {
		r.Bad = true
	} else if n > 0 {
		o.Links = make([]string, n)
		for i := range o.Links {
			o.Links[i] = r.String()
		}
	}
	return o, checkRead(r, KindOutLinks)
}

// To returns the InURL of a link, for the next round.
func (o *OutLinks) To(link string) InURL {
	in := InURL{Collection: o.Collection, URL: link, From: o.URL, Depth: o.Depth + 1}
	if o.Type == RedirectLink {
		in.Depth, in.Redirects, in.Seed = o.Depth, o.Redirects+1, o.Seed
	}
	return in
}
