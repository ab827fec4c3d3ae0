package pdf

import (
	"regexp"
	"strings"

	"kumo/internal/content/document"
)

// linked is a page's link annotation.
type linked struct {
	page      int
	text, url string
}

// attach adds links to the page's first block that contains their text, and returns the URLs of the others. Blocks are
// in the order of pages. most limits the number of all links, including URLs in the text; 0 is no limit.
func attach(blocks []document.Block, links []linked, most int) (others []string) {
	begin := map[int]int{} // the first block of a page
	for i := len(blocks) - 1; i >= 0; i-- {
		begin[blocks[i].Page] = i
	}
	type place struct{ block, at int }
	var next place // links of a page mostly come in the order of its text
	page, n := 0, 0
	seen := map[string]bool{}
	for _, l := range links {
		if l.page != page {
			page, next = l.page, place{}
			if i, ok := begin[page]; ok {
				next.block = i
			}
		}
		n++
		found := false
		if first, ok := begin[page]; ok && l.text != "" {
			for _, from := range []place{next, {block: first}} {
				for i := from.block; i < len(blocks) && blocks[i].Page == page; i++ {
					at := 0
					if i == from.block {
						at = min(from.at, len(blocks[i].Text))
					}
					if x := strings.Index(blocks[i].Text[at:], l.text); x >= 0 {
						blocks[i].Links = append(blocks[i].Links, document.Link{Text: l.text, URL: l.url})
						next, found = place{i, at + x + len(l.text)}, true
						break
					}
				}
				if found {
					break
				}
			}
		}
		if !found && !seen[l.url] {
			seen[l.url] = true
			others = append(others, l.url)
		}
	}
	for i := range blocks {
		b := &blocks[i]
		for _, u := range bareURLs(b.Text) {
			if most > 0 && n >= most {
				return others
			}
			if !covers(b.Links, u) {
				b.Links = append(b.Links, document.Link{Text: u, URL: u})
				n++
			}
		}
	}
	return others
}

// covers reports whether the text of one of the links contains the URL, or is a part of it: an annotation for each of
// its lines.
func covers(links []document.Link, u string) bool {
	for _, l := range links {
		if strings.Contains(l.Text, u) || strings.HasPrefix(l.URL, u) || len(l.Text) > 3 && strings.Contains(u, l.Text) {
			return true
		}
	}
	return false
}

var bareURL = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"“”„«»{}|\\^\x60]+`)

// bareURLs returns the URLs of a text, without the punctuation after them.
func bareURLs(s string) []string {
	if !strings.Contains(s, "://") {
		return nil
	}
	var urls []string
	for _, u := range bareURL.FindAllString(s, -1) {
		for {
			short := strings.TrimRight(u, ".,;:!?'’*…、。，）」』")
			for _, pair := range []string{"()", "[]"} {
				if strings.HasSuffix(short, pair[1:]) && strings.Count(short, pair[:1]) < strings.Count(short, pair[1:]) {
					short = short[:len(short)-1]
				}
			}
			if short == u {
				break
			}
			u = short
		}
		if _, rest, _ := strings.Cut(u, "://"); len(rest) > 2 {
			urls = append(urls, u)
		}
	}
	return urls
}
