package maintext

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/text/language"
)

// A head is the metadata that a page declares, unprocessed.
type head struct {
	title, ogTitle, dataTitle, dataText string
	htmlLang, xmlLang, metaLang, locale string
	published, dataPublished            string // as written
	authors, h1                         []string
}

// readHead reads title, language, author and date, the headline if title and h1 agree on it, and the text in JSON-LD.
func readHead(doc *html.Node, now time.Time) Text {
	var h head
	for n := range descendants(doc) {
		h.read(n)
	}
	return Text{
		Title: h.title, Headline: h.headline(), Text: h.dataText, Author: collapse(strings.Join(h.authors, "; "), maxField),
		Published: cmp.Or(readDate(h.dataPublished, now), readDate(h.published, now)),
		Lang:      firstLang(h.htmlLang, h.xmlLang, h.metaLang, h.locale),
	}
}

func (h *head) read(n *html.Node) {
	if attr(n, "itemprop") == "datePublished" {
		h.addDate(attr(n, "datetime") + attr(n, "content"))
	}
	switch n.DataAtom {
	case atom.Html:
		h.htmlLang, h.xmlLang = attr(n, "lang"), attr(n, "xml:lang")
	case atom.Title:
		if h.title == "" {
			h.title = textOf(n)
		}
	case atom.H1:
		if text := textOf(n); text != "" && len(h.h1) < 8 {
			h.h1 = append(h.h1, text)
		}
	case atom.Meta:
		h.readMeta(n)
	case atom.Script:
		h.readData(n)
	}
}

func (h *head) readMeta(n *html.Node) {
	content := collapse(attr(n, "content"), maxField)
	switch strings.ToLower(attr(n, "name") + attr(n, "property") + attr(n, "http-equiv")) {
	case "og:title":
		h.ogTitle = content
	case "og:locale":
		h.locale = content
	case "content-language":
		h.metaLang = content
	case "article:published_time", "dc.date.issued", "dcterms.issued", "citation_publication_date":
		h.addDate(content)
	case "author", "article:author", "dc.creator", "citation_author":
		h.addAuthor(content)
	}
}

// addDate stores the first date.
func (h *head) addDate(s string) {
	if h.published == "" {
		h.published = s
	}
}

// addAuthor adds an author's name, ignoring duplicates and URLs of profiles.
func (h *head) addAuthor(name string) {
	name = collapse(name, maxField)
	if name != "" && len(h.authors) < 8 && !strings.Contains(name, "://") && !slices.Contains(h.authors, name) {
		h.authors = append(h.authors, name)
	}
}

// headline returns the headline in JSON-LD. Otherwise it returns the longest h1 that equals og:title or begins a title;
// the site's name is usually at the end of titles. Otherwise it returns the only h1.
func (h *head) headline() string {
	best := collapse(h.dataTitle, maxField)
	if best != "" {
		return best
	}
	for _, text := range h.h1 {
		whole := text == h.ogTitle || strings.HasPrefix(h.title, text) || strings.HasPrefix(h.ogTitle, text)
		if whole && len(text) > len(best) {
			best = text
		}
	}
	if best == "" && len(h.h1) == 1 {
		return h.h1[0]
	}
	return best
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range descendants(n) {
		if d.Type == html.TextNode && b.Len() < 2*maxField {
			b.WriteString(d.Data)
		}
	}
	return collapse(b.String(), maxField)
}

// firstLang returns the first valid tag, in canonical form.
func firstLang(tags ...string) string {
	for _, s := range tags {
		s, _, _ = strings.Cut(s, ",")
		if s = strings.TrimSpace(s); s == "" || len(s) > 35 {
			continue
		}
		if tag, err := language.Parse(s); err == nil && tag != language.Und {
			return tag.String()
		}
	}
	return ""
}
