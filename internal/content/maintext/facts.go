package maintext

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// facts are the dates and authors in the elements of a page, the first from each source. Comments, asides and footers
// are not searched: their dates and names are those of other texts.
type facts struct {
	dateReader
	meta      string // in meta elements
	published string // in elements of which the name says that it is the publication date
	time      string // in time elements
	named     string // in elements with the name of a date
	eastAsian string // in short texts with Chinese, Japanese or Korean signs
	text      string // in texts that are little more than a date
	titled    string // in title attributes
	inProse   string // in time elements within prose
	isNamed   bool   // named precedes time
	local     []time.Time

	linked                       []string
	marked, namedAuthor, profile string
	spoken                       string // after words such as "Posted by"

	begin, end int // nodes that may have a byline
}

// findFacts finds dates and authors in one pass.
func (d *document) findFacts(now time.Time, monthFirst bool) facts {
	f := facts{dateReader: dateReader{now, monthFirst}}
	f.begin, f.end = d.opening()
	end := 0 // of what is not searched
	for i, is := range d.flags {
		n := d.tree.Node(i)
		if n.DataAtom == atom.Meta {
			f.readMeta(n)
			continue
		}
		switch {
		case i < end:
		case is&gone != 0, is&aside != 0 && d.isElsewhere(i) && !f.isByline(d, i):
			end = d.tree.End(i)
		case n.Type == html.ElementNode:
			if n.DataAtom != atom.Body && n.DataAtom != atom.Html {
				f.dates(d, i, n)
				f.authors(d, n, d.names[i])
			}
		case n.Type == html.TextNode && is&pre == 0:
			f.readText(n)
			f.readByline(d, i, n)
		}
	}
	return f
}

// isElsewhere reports whether an aside is about other texts, rather than a line about this one.
func (d *document) isElsewhere(i int) bool {
	switch d.tree.Node(i).DataAtom {
	case atom.Nav, atom.Aside, atom.Menu:
		return true
	case atom.Footer:
		return d.names[i]&(metaName|dateName|authorName|entryFooterName) == 0
	}
	return d.names[i]&(asideName|layerName|commentName) != 0 && d.names[i]&entryFooterName == 0
}

func (f *facts) readMeta(n *html.Node) {
	if f.meta == "" && len(n.Attr) > 1 &&
		metaDates[strings.ToLower(attr(n, "name")+attr(n, "property")+attr(n, "itemprop")+attr(n, "pubdate"))] {
		f.meta = f.read(attr(n, "content"))
	}
}

func (f *facts) dates(d *document, i int, n *html.Node) {
	is := d.names[i]
	if f.titled == "" && (n.DataAtom == atom.Span || n.DataAtom == atom.A) {
		if title := attr(n, "title"); len(title) >= len(time.DateOnly) && beginsWithDigit(title) {
			f.titled = firstDate(f.now, title)
		}
	}
	isTime := n.DataAtom == atom.Time || n.DataAtom == atom.Abbr
	if !isTime && is&(dateName|publishedName) == 0 {
		return
	}
	if isTime {
		at := cmp.Or(attr(n, "datetime"), attr(n, "title"))
		if t, err := time.Parse(time.RFC3339, at); err == nil && len(f.local) < 8 {
			f.local = append(f.local, t)
		}
		found := cmp.Or(f.read(at), f.read(d.shortTextOf(n)))
		if found != "" && is&publishedName == 0 && f.time == "" && isModified(n) {
			return
		}
		if f.published == "" && (is&publishedName != 0 || has(n, "pubdate")) {
			f.published = found
		}
		if n.DataAtom == atom.Time {
			if d.isInProse(i) {
				f.inProse = cmp.Or(f.inProse, found)
			} else {
				f.isNamed = f.isNamed || f.time == "" && f.named != ""
				f.time = cmp.Or(f.time, found)
			}
		}
	}
	if f.named == "" && is&dateName != 0 {
		if f.named = f.read(attr(n, "content")); f.named == "" {
			line := d.shortTextOf(n)
			if f.named = f.read(line); f.named != "" {
				if rest := withoutChange(line); rest != line {
					f.named = f.read(rest)
				}
			}
		}
		if f.named != "" && isModified(n) {
			f.named = ""
		}
		if f.named == "" && is&publishedName != 0 {
			f.named = f.read(attr(n, "title"))
		}
	}
}

// maxInline bounds the levels of inline elements that are searched for a paragraph.
const maxInline = 32

// isInProse reports whether an element is within a long paragraph.
func (d *document) isInProse(i int) bool {
	for range maxInline {
		if i = d.tree.Parent(i); i <= 0 {
			return false
		}
		if n := d.tree.Node(i); styleOf(n.DataAtom) != inline {
			return n.DataAtom == atom.P && d.plain(i) > longProse
		}
	}
	return false
}

const longProse = 40 // weight of a paragraph that is more than a line about the text

// readText reads the date in a text that is little more than a date, or that begins with one as a dateline does.
func (f *facts) readText(n *html.Node) {
	s := n.Data
	if len(s) < len("1/1/99") || f.text != "" && f.eastAsian != "" {
		return
	}
	if f.text == "" && len(s) > maxLoneDate {
		first, rest, _ := strings.Cut(strings.TrimSpace(s[:maxLoneDate]), " ")
		if len(first) >= len("1.1.2022") && len(first) < 12 && strings.IndexAny(rest, "-–—|:") == 0 {
			f.text = f.read(first)
		}
	}
	if len(s) > maxShortText || !hasDigits(s, 4) || n.Parent.DataAtom == atom.Code {
		return
	}
	if f.text == "" && utf8.RuneCountInString(s) <= maxLoneDate && !strings.Contains(s, "©") {
		if f.text = f.read(s); f.text != "" && (isModified(n.Parent) || isModified(n)) {
			f.text = ""
		}
	}
	if f.eastAsian == "" && hasDigits(s, 6) && (strings.ContainsAny(s, "年년") || strings.Contains(s, ". ")) {
		f.eastAsian = firstDay(signs, s, f.now)
	}
}

// date returns the publication date. The sources are, most reliable first: declared dates, the URL, elements that
// declare it, time elements, elements whose names indicate dates, and short texts. A date must have year, month and
// day. An element whose name indicates a date goes before the time elements that follow it.
func (h *head) date(f *facts, page string, now time.Time) string {
	data, declared := f.read(h.dataPublished), cmp.Or(f.read(h.published), f.read(h.itemPublished))
	shown := cmp.Or(f.published, f.time, f.named)
	if f.isNamed {
		shown = cmp.Or(f.published, f.named)
	}
	if data == "" || declared != "" && day(shown) == day(declared) && day(shown) != day(data) {
		data = declared // the page shows the other one
	}
	return f.inZone(cmp.Or(data, f.meta, firstDay(inPath, pathOf(page), now), shown, f.read(h.pagePublished), f.eastAsian,
		f.text, f.titled, f.inTitle(h.title), f.inProse))
}

// inTitle reads a date at the beginning of a title.
func (f *facts) inTitle(title string) string {
	first, _, _ := strings.Cut(title, " ")
	if len(first) < len("1.1.2022") {
		return ""
	}
	return f.read(first)
}

func day(date string) string { return date[:min(len(date), len(time.DateOnly))] }

// inZone returns a time in UTC in the page's own time zone, if the page shows the same time in it.
func (f *facts) inZone(date string) string {
	t, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return date
	}
	if _, offset := t.Zone(); offset != 0 {
		return date
	}
	for _, l := range f.local {
		if l.Equal(t) {
			return l.Format(time.RFC3339)
		}
	}
	return date
}

// monthFirst reports whether dates in digits have the month first.
func (h *head) monthFirst() bool {
	for _, tag := range []string{h.htmlLang, h.xmlLang, h.metaLang, h.locale} {
		if tag != "" {
			return strings.EqualFold(strings.ReplaceAll(tag, "_", "-"), "en-US")
		}
	}
	return false
}
