package check

import (
	"bytes"
	"cmp"
	"errors"
	"time"

	"kumo/internal/content/parse/feed"
)

// SitemapIn is a list for machines as it was served: a sitemap or an index of sitemaps, RSS, Atom, a JSON feed, packed
// or not.
type SitemapIn struct {
	Body []byte `json:"body_b64" need:"body_b64"`
	URL  string `json:"url"` // "" if not known
}

// SitemapOut is what it lists.
type SitemapOut struct {
	Entries   []Entry `json:"entries"`
	Malformed string  `json:"malformed,omitempty"` // where the list is broken off
}

// An Entry is one URL in a list.
type Entry struct {
	URL      string  `json:"url"`
	Kind     string  `json:"kind"`
	Modified string  `json:"modified"` // RFC 3339, "" if the list does not say
	Priority float64 `json:"priority"` // 0 to 1, 0.5 if the list does not say
}

// Sitemap reads a list. A body in no format of a list is an error.
func Sitemap(in SitemapIn) (SitemapOut, error) {
	out := SitemapOut{Entries: []Entry{}}
	for e, err := range feed.Read(bytes.NewReader(in.Body), cmp.Or(in.URL, unknownURL), feed.Config{}) {
		switch {
		case err == nil:
			out.Entries = append(out.Entries, entryOf(e))
		case len(out.Entries) == 0 || errors.Is(err, feed.ErrFormat):
			return SitemapOut{}, err
		default:
			out.Malformed = err.Error()
		}
	}
	return out, nil
}

func entryOf(e feed.Entry) Entry {
	modified := ""
	if !e.Modified.IsZero() {
		modified = e.Modified.Format(time.RFC3339)
	}
	return Entry{URL: e.URL, Kind: e.Kind.String(), Modified: modified, Priority: e.Priority}
}
