package check

import (
	"bytes"
	"cmp"
	"errors"
	"time"

	"kumo/internal/content/parse/feed"
)

// SitemapIn is a list as it was received: a sitemap or sitemap index, RSS, Atom or a JSON feed, optionally compressed.
type SitemapIn struct {
	Body []byte `json:"body_b64" need:"body_b64"`
	URL  string `json:"url"` // "" if unknown
}

// SitemapOut is the content of a list.
type SitemapOut struct {
	Entries   []Entry `json:"entries"`
	Malformed string  `json:"malformed,omitempty"` // where the list breaks off
}

// An Entry is one URL of a list.
type Entry struct {
	URL      string  `json:"url"`
	Kind     string  `json:"kind"`
	Modified string  `json:"modified"` // RFC 3339; "" if the list has no date
	Priority float64 `json:"priority"` // 0 to 1; 0.5 if the list has none
}

// Sitemap parses a list. A body in none of the formats is an error.
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
