package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"kumo/internal/base/page"
	"kumo/internal/content/parse/feed"
)

// entryCost is the approximate memory of a list entry besides its URL, in bytes.
const entryCost = 192

// ParseList parses a response that was named as a sitemap. It reads the body as a list of any format, compressed or
// not, whatever type is declared. If the body is not a list, the result is that of Parse.
func (p *Parser) ParseList(resp *page.Response, pg *page.Page) error {
	plain := p.cfg.PlainText
	p.cfg.PlainText = false // the URLs in the text are the list's entries
	err := p.Parse(resp, pg)
	p.cfg.PlainText = plain
	if err != nil || redirects(pg) || IsList(pg.Sniffed) {
		return err
	}
	return p.readList(resp, pg)
}

// IsList reports whether Parse looks for a list in a body of the media type: a sitemap, RSS, Atom or a JSON feed.
func IsList(mediaType string) bool {
	switch mediaType {
	case "text/xml", "application/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml",
		"application/feed+json", "application/json":
		return true
	}
	return false
}

func redirects(pg *page.Page) bool {
	return slices.ContainsFunc(pg.Links, func(l page.Link) bool { return l.Kind == page.Redirect })
}

// readList adds a list's entries to the page's links. XML or JSON that is not a list has none. If a list is truncated
// or exceeds a limit, the entries before that point are kept; truncation is an error. The list is read as a stream and
// need not fit into memory. A URL with its images and its other languages counts as one entry.
func (p *Parser) readList(resp *page.Response, pg *page.Page) error {
	body := io.Reader(bytes.NewReader(resp.Body))
	if resp.FullBody != nil {
		body = resp.FullBody()
	}
	n, size := 0, 0
	for entry, err := range feed.Read(body, resp.URL, feed.Config{}) {
		if errors.Is(err, feed.ErrFormat) {
			return nil
		}
		if errors.Is(err, feed.ErrTooLarge) {
			pg.LinksCut = page.ByLength
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w, after %d entries", err, n)
		}
		if !entry.SameRecord {
			n++
		}
		if size += len(entry.URL) + entryCost; n > p.cfg.MaxListed || size > 3*p.cfg.MaxURLs {
			pg.Dropped++
			if pg.MemoryCut, pg.LinksCut = true, page.ByMemory; n > p.cfg.MaxListed {
				pg.LinksCut = page.ByEntries
			}
			return nil
		}
		entry.Link.Priority = float32(entry.Priority)
		pg.Links = append(pg.Links, entry.Link)
	}
	return nil
}
