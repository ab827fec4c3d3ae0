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

// entryCost is about what an entry of a list takes in memory besides its URL.
const entryCost = 192

// ParseList is Parse for what was named as a sitemap: its body is read as a list of any format, packed or not, whatever
// type is declared. A body that is none is read as Parse does.
func (p *Parser) ParseList(resp *page.Response, pg *page.Page) error {
	plain := p.cfg.PlainText
	p.cfg.PlainText = false // its URLs are the list's entries
	err := p.Parse(resp, pg)
	p.cfg.PlainText = plain
	if err != nil || redirects(pg) || IsList(pg.Sniffed) {
		return err
	}
	return p.readList(resp, pg)
}

// IsList reports whether Parse looks for a list in a body of the type: a sitemap, RSS, Atom or a JSON feed.
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

// readList adds a list's entries to the page's links. XML or JSON that is no list has none. What is broken off is an
// error, and what came before it stands. So does what came before a limit. A list is read as a stream: it need not lie
// in memory as a whole. An entry's links count once: a URL with its pictures and its other languages is one entry.
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
