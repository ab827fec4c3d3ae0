package audit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kumo/internal/base/item"
	"kumo/internal/state/store/jsonl"
)

// descending is a key that sorts larger numbers first.
func descending(n int64, url string) string { return fmt.Sprintf("%016x%s", math.MaxInt64-n, url) }

func (a *auditor) addTime(p *jsonl.PageLine) error {
	if p.TotalMS <= a.Slow.Milliseconds() {
		return nil
	}
	return a.addRow(slow, descending(p.TotalMS, p.URL), "slow", p.URL, strconv.FormatInt(p.TotalMS, 10),
		strconv.FormatInt(p.FirstByteMS, 10), strconv.FormatInt(p.ConnectMS, 10), strconv.FormatInt(p.Bytes, 10))
}

func (a *auditor) addSize(p *jsonl.PageLine) error {
	if p.Bytes <= a.Large {
		return nil
	}
	return a.addRow(large, descending(p.Bytes, p.URL), "large", p.URL, strconv.FormatInt(p.Bytes, 10), p.Type,
		strconv.FormatInt(p.TotalMS, 10))
}

// A directiveSet has the directives of a page for any robot.
type directiveSet struct{ noIndex, noFollow bool }

// directivesOf returns the directives in a text of meta elements and header fields. Those for one search engine only
// are included: an auditor wants to know of them.
func directivesOf(text string) (d directiveSet) {
	if text == "" {
		return d
	}
	between := func(r rune) bool { return strings.ContainsRune(",;: ", r) }
	for _, word := range strings.FieldsFunc(strings.ToLower(text), between) {
		d.noIndex = d.noIndex || word == "noindex" || word == "none"
		d.noFollow = d.noFollow || word == "nofollow" || word == "none"
	}
	return d
}

func (a *auditor) addDirectives(p *jsonl.PageLine, d directiveSet) error {
	for _, one := range []struct {
		name string
		is   bool
	}{{"noindex", d.noIndex}, {"nofollow", d.noFollow}} {
		if one.is {
			if err := a.addRow(directives, one.name+p.URL, one.name, one.name, p.URL, p.Robots); err != nil {
				return err
			}
		}
	}
	return nil
}

// addText adds a title or a description. Equal ones of a host follow each other.
func (a *auditor) addText(t tableID, url, text string) error {
	return a.add(t, item.HostOf(url)+"\x00"+strings.ReplaceAll(text, "\x00", " "), url)
}

// textRows writes which texts are missing, too long or repeated on a host.
func (a *auditor) textRows(ctx context.Context, t tableID, most int, out *rows) error {
	first, text, before := "", "", ""
	row := func(problem, url string) error {
		return out.row(problem, problem, url, text, strconv.Itoa(utf8.RuneCountInString(text)))
	}
	return a.each(ctx, t, func(key, url string) error {
		if _, text, _ = strings.Cut(key, "\x00"); text == "" {
			return row("missing", url)
		}
		if utf8.RuneCountInString(text) > most {
			if err := row("long", url); err != nil {
				return err
			}
		}
		if key != before {
			before, first = key, url
			return nil
		}
		if first != "" {
			if err := row("repeated", first); err != nil {
				return err
			}
			first = ""
		}
		return row("repeated", url)
	})
}

// addPage adds the row of a URL to the table of all.
func (a *auditor) addPage(p *jsonl.PageLine) error {
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	var languages []string
	for _, v := range p.HrefLang {
		languages = append(languages, strings.Join(strings.Fields(v.Lang), ""), v.URL)
	}
	to := ""
	if p.Final != p.URL {
		to = p.Final
	}
	cells := []string{p.URL, strconv.Itoa(p.Status), cmp.Or(p.Sniffed, p.Type), p.Lang, p.Title, p.H1, p.Description,
		p.Canonical, p.Robots, strings.Join(languages, " "), strconv.Itoa(p.Depth), "", strconv.Itoa(p.Links), p.From, to,
		n(p.Bytes), n(p.TotalMS), n(p.FirstByteMS), n(p.ConnectMS), p.Digest, p.ContentDigest, p.NearDuplicate,
		p.Time.UTC().Format(time.RFC3339)}
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "\x00", " ")
	}
	return a.add(allPages, p.URL, markRow+strings.Join(cells, "\x00"))
}

// addInlinks adds the number of links to a URL, which need not have a response.
func (a *auditor) addInlinks(url string, n int64) error {
	return a.add(allPages, url, markInlinks+strconv.FormatInt(n, 10))
}

// Marks of the values of the table pages. Inlinks sort first.
const (
	markInlinks = "a"
	markRow     = "b"
)

// pageRows writes the URLs with a response, each with the number of links to it.
func (a *auditor) pageRows(ctx context.Context, out *rows) error {
	inlinks, linked, last := "", "", ""
	return a.each(ctx, allPages, func(url, value string) error {
		if count, is := strings.CutPrefix(value, markInlinks); is {
			linked, inlinks = url, count
			return nil
		}
		if url == last {
			return nil // another visit in the same millisecond
		}
		last = url
		cells := strings.Split(value[len(markRow):], "\x00")
		switch {
		case linked == url:
			cells[inlinksColumn] = inlinks
		case a.hasInlinks:
			cells[inlinksColumn] = "0"
		}
		return out.row("status "+cells[1], cells...)
	})
}

// addContent adds the digest of a page's content.
func (a *auditor) addContent(p *jsonl.PageLine) error {
	sum := p.Digest
	if p.ContentDigest != "" {
		sum = p.ContentDigest // servers that compress each answer anew change the bytes, and not the page
	}
	if sum == "" || p.Bytes == 0 {
		return nil
	}
	return a.add(duplicates, sum, p.URL+"\x00"+strconv.FormatInt(p.Bytes, 10))
}

// duplicateRows writes the pages with the same content as one before in the order of URLs.
func (a *auditor) duplicateRows(ctx context.Context, out *rows) error {
	sum, first := "", ""
	return a.each(ctx, duplicates, func(key, value string) error {
		url, size, _ := strings.Cut(value, "\x00")
		if key != sum {
			sum, first = key, url
			return nil
		}
		if url == first {
			return nil // two lines of one URL
		}
		return out.row("duplicate", url, first, key, size)
	})
}
