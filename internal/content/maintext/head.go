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
	published, dataPublished            string // as written; published is in meta elements
	itemPublished                       string // in microdata
	pagePublished                       string // of the page, not of its article
	authors, dataAuthors, h1, h2, h3    []string
	ogType, generator                   string
	types                               pageType
}

// pageType is a set of declared types of content.
type pageType uint8

const (
	articleType pageType = 1 << iota
	threadType
	listType
	productType
	serviceType
	otherType // of pages with an author and a date that are not articles
)

// readHead reads the declared metadata.
func (d *document) readHead() (h head) {
	inSVG := 0
	for i := range d.flags {
		n := d.tree.Node(i)
		if n.Type != html.ElementNode {
			continue
		}
		if n.DataAtom == atom.Svg {
			inSVG = max(inSVG, d.tree.End(i))
		}
		if i >= inSVG {
			h.read(d, n, d.flags[i])
		}
	}
	return h
}

// restrict removes author and date of other texts: those of the entries of a list, or of the reviews of a product.
// Documentation has the dates of its changes.
func (h *head) restrict(t *Text, k kind, found *facts, page string, now time.Time) {
	declared := facts{dateReader: found.dateReader, meta: found.meta, local: found.local}
	switch k {
	case listing, product:
		t.Author = collapse(cmp.Or(strings.Join(h.dataAuthors, "; "), strings.Join(h.authors, "; ")), maxField)
		h.itemPublished = ""
	case documentation:
		declared.published, declared.time = found.published, found.time
	default:
		return
	}
	t.Published = strings.Clone(h.date(&declared, page, now))
}

// facts sets the fields of a text but the main text.
func (h *head) facts(t *Text, found *facts, page string, now time.Time) {
	*t = Text{
		Title: strings.Clone(h.title), Lang: firstLang(h.htmlLang, h.xmlLang, h.metaLang, h.locale),
		Author: collapse(cmp.Or(strings.Join(h.dataAuthors, "; "), strings.Join(h.authors, "; "), found.author()),
			maxField),
		Published: strings.Clone(h.date(found, page, now)),
	}
	t.Headline = strings.Clone(cmp.Or(h.headline(), h.headlineFromTitle()))
}

func (h *head) read(d *document, n *html.Node, f flag) {
	if f&declaredDate != 0 && h.itemPublished == "" {
		h.itemPublished = attr(n, "datetime") + attr(n, "content")
	}
	switch n.DataAtom {
	case atom.Html:
		h.htmlLang, h.xmlLang = attr(n, "lang"), attr(n, "xml:lang")
	case atom.Title:
		if h.title == "" {
			h.title = d.headingOf(n)
		}
	case atom.H1:
		if len(h.h1) < 8 && f&gone == 0 {
			if text := d.headingOf(n); text != "" {
				h.h1 = append(h.h1, text)
			}
		}
	case atom.H2:
		if len(h.h2) < 8 && f&gone == 0 {
			h.h2 = append(h.h2, d.headingOf(n))
		}
	case atom.H3:
		if len(h.h3) < 8 && f&gone == 0 {
			h.h3 = append(h.h3, d.headingOf(n))
		}
	case atom.Meta:
		h.readMeta(n)
	case atom.Script:
		if n.FirstChild != nil && strings.EqualFold(strings.TrimSpace(attr(n, "type")), "application/ld+json") {
			h.readData(n)
		}
	}
}

func (h *head) readMeta(n *html.Node) {
	key := strings.ToLower(attr(n, "name") + attr(n, "property") + attr(n, "http-equiv"))
	switch key {
	case "og:title", "og:locale", "og:type", "generator", "content-language", "article:published_time", "dc.date.issued",
		"dcterms.issued", "citation_publication_date", "author", "article:author", "dc.creator", "citation_author":
	default:
		return
	}
	content := collapse(attr(n, "content"), maxField)
	switch key {
	case "og:title":
		h.ogTitle = content
	case "og:locale":
		h.locale = content
	case "og:type":
		h.ogType = strings.ToLower(content)
	case "generator":
		h.generator += strings.ToLower(content) + " "
	case "content-language":
		h.metaLang = content
	case "article:published_time", "dc.date.issued", "dcterms.issued", "citation_publication_date":
		h.addDate(content)
	default:
		for name := range strings.SplitSeq(separateNames(content, joinedComma), "; ") {
			h.authors = addAuthor(h.authors, name)
		}
	}
}

// addDate stores the first date.
func (h *head) addDate(s string) {
	if h.published == "" {
		h.published = s
	}
}

// addAuthor adds an author's name, ignoring duplicates, URLs of profiles and names of roles.
func addAuthor(all []string, name string) []string {
	name = collapse(name, maxField)
	if name == "" || len(all) >= 8 || strings.Contains(name, "://") || roleNames[strings.ToLower(name)] ||
		slices.Contains(all, name) {
		return all
	}
	return append(all, name)
}

// roleNames are the names of accounts that are not names of people.
var roleNames = wordSet("admin administrator webmaster root user author editor staff unknown anonymous guest")

// headline returns the headline in JSON-LD. Otherwise it returns the longest h1 that equals og:title or begins a title;
// the site's name is usually at the end of titles. Otherwise it returns the only h1.
func (h *head) headline() string {
	best := collapse(h.dataTitle, maxField)
	if best != "" {
		return best
	}
	if h.ogTitle != "" && slices.Contains(h.h3, h.ogTitle) {
		return h.ogTitle // the h1 is the site's name
	}
	for _, text := range h.h1 {
		if len(text) > len(h.title) && len(h.title) >= minTitle && strings.HasSuffix(text, " "+h.title) {
			return h.title // the h1 has a label: "Thread: "
		}
		whole := text == h.ogTitle || strings.HasPrefix(h.title, text) || strings.HasPrefix(h.ogTitle, text)
		if whole && len(text) > len(best) {
			best = text
		}
	}
	for _, text := range h.h2 {
		if best == "" && text != "" && (text == h.title || text == h.ogTitle || hasSite(h.title, text)) {
			best = text
		}
	}
	if best == "" && len(h.h1) == 1 {
		return h.h1[0]
	}
	return best
}

// minTitle is the length in bytes from which a title is a headline if a heading ends with it.
const minTitle = 8

// hasSite reports whether a title is a headline and a separator with the site's name.
func hasSite(title, headline string) bool {
	rest, found := strings.CutPrefix(title, headline+" ")
	return found && strings.IndexAny(rest, "|-–—:»·") == 0
}

// headingOf returns the text of a title or heading, at most maxField bytes.
func (d *document) headingOf(n *html.Node) string {
	var b strings.Builder
	for c := range d.near(n) {
		if c.Type == html.TextNode && (c.Parent.DataAtom != atom.A || !isSelfLink(c.Parent)) {
			b.WriteString(c.Data[:min(len(c.Data), 4*maxField)])
		}
		if b.Len() >= 2*maxField {
			break
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
