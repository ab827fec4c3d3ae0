package maintext

import (
	"net/url"
	"strings"

	"golang.org/x/net/html/atom"
)

// A kind is a kind of page, which decides where its main text is.
type kind uint8

const (
	other         kind = iota // none of the kinds below
	articleKind               // one text
	thread                    // posts of a forum, questions and answers: all of them
	product                   // description and properties, without other products and without reviews
	listing                   // the entries of a list, with their links
	documentation             // one text with its lists and tables, including those of links
	service                   // parts that present an offer
	itemKind                  // the parts of a recipe, an event or a profile
)

func (k kind) String() string {
	return [...]string{"other", "article", "forum", "product", "listing", "documentation", "service", "other"}[k]
}

// A classifier decides the kind of a page.
type classifier struct {
	*document
	head  *head
	page  string // its URL
	dated bool   // the page has an author and a date of publication
}

// declared returns the kind that a page declares, or that its generator or its posts have; other if it is unknown.
func (c *classifier) declared() kind {
	types := c.head.types
	switch {
	case types&threadType != 0:
		return thread
	case c.head.hasGenerator(manuals), c.isManual:
		return documentation
	case types&productType != 0 && types&listType == 0, strings.HasPrefix(c.head.ogType, "product"), c.isProductView():
		return product
	case types&articleType != 0:
		return articleKind
	case c.isThread():
		return thread
	}
	return other
}

// kindOf decides the kind of a page from the declared one, from its structure and from its URL.
func (c *classifier) kindOf(declared kind) kind {
	switch {
	case declared != other:
		return declared
	case c.head.types&listType != 0 && len(c.articles) != 1:
		return listing
	case c.head.ogType == "article" && !isFrontPage(c.page):
		return articleKind
	}
	if best, all := c.heaviestArticle(); best > 0 && !c.head.hasGenerator(builders) {
		switch {
		case 2*c.goodOf(best) <= all && len(c.articles) > 1:
			return listing
		case c.dated || !c.hasParts(best):
			return articleKind
		}
		return service
	}
	switch {
	case c.isListing():
		return listing
	case c.head.types&otherType != 0:
		return itemKind
	case c.dated, c.head.hasGenerator(wikis):
		return articleKind
	case c.head.types&serviceType != 0, c.head.hasGenerator(builders), c.hasParts(0):
		return service
	}
	return other
}

// isProductView reports whether the names of body, or a single item in microdata, say that the page shows one product.
func (c *classifier) isProductView() bool {
	items := 0
	for i := range c.flags {
		n := c.tree.Node(i)
		if c.flags[i]&productItem != 0 {
			items++
		}
		if n.DataAtom == atom.Body {
			if strings.EqualFold(attr(n, "id"), "product") {
				return true
			}
			for name := range strings.FieldsSeq(attr(n, "class")) {
				if productViews[name] {
					return true
				}
			}
		}
	}
	return items == 1
}

// productViews are the classes of pages with one product in programs for shops.
var productViews = wordSet("single-product catalog-product-view template-product product-template product-page page-product")

func isFrontPage(page string) bool {
	u, err := url.Parse(page)
	return err == nil && u.Host != "" && (u.Path == "" || u.Path == "/") && u.RawQuery == ""
}

// isThread reports whether at least two elements are posts, and have most of the text outside of links.
// Comments are posts if the page has hardly anything else.
func (c *classifier) isThread() bool {
	if len(c.posts) == 0 {
		return false
	}
	weight, comments, number, end := int32(0), int32(0), 0, 0
	for i := range c.flags {
		if c.flags[i]&post == 0 || c.flags[i]&gone != 0 || i < end {
			continue
		}
		class := attr(c.tree.Node(i), "class")
		if c.posts[class] < 2 {
			continue
		}
		end = c.tree.End(i)
		if c.names[i]&postName == 0 {
			comments += c.plain(i)
			continue
		}
		if good := c.plain(i); good >= sentence {
			weight += good
			number++
		}
	}
	return number >= 2 && 2*weight > c.plain(0) || 4*comments > 3*c.plain(0) && c.plain(0)-comments < minWeight
}

// minEntries is the number of entries from which elements with the same class are a list.
const minEntries = 4

// isListing reports whether most of the page's text is in entries. Entries are siblings with the same tag and class; each
// has a link with a title.
func (c *classifier) isListing() bool {
	type group struct {
		tag   atom.Atom
		class string
	}
	type entries struct {
		number int
		weight int32
		end    int // of the last one, because entries may be nested
	}
	all, found := c.between(0).text, map[group]entries{}
	for i := 1; i < len(c.flags); i++ {
		if c.flags[i]&(gone|aside) != 0 {
			i = c.tree.End(i) - 1
			continue
		}
		n := c.tree.Node(i)
		if !isEntryTag(n.DataAtom) || !c.isEntry(i) {
			continue
		}
		g := group{n.DataAtom, attr(n, "class")}
		e := found[g]
		if i < e.end || e.number == 0 && len(found) >= maxGroups {
			continue
		}
		e = entries{e.number + 1, e.weight + c.between(i).text, c.tree.End(i)}
		if found[g] = e; e.number >= minEntries && 2*e.weight > all {
			return true
		}
	}
	return false
}

// maxGroups bounds the classes that are compared.
const maxGroups = 1000

func isEntryTag(a atom.Atom) bool {
	return a == atom.Div || a == atom.Li || a == atom.Section || a == atom.Tr || a == atom.Dl
}

// isEntry reports whether an element has a link with a title, and a text that is not much longer.
func (c *classifier) isEntry(i int) bool {
	s := c.between(i)
	if s.links == 0 || s.link < shortLabel || 10*s.link < s.text || s.text >= maxEntry {
		return false
	}
	for n := range c.near(c.tree.Node(i)) {
		if n.DataAtom == atom.A {
			return !strings.HasPrefix(attr(n, "href"), "#") // rather than a part of this page
		}
	}
	return false
}

// maxEntry bounds the weight of an entry; longer texts are not teasers.
const maxEntry = 800

// hasParts reports whether a page or an article consists of short parts in boxes of their own, each below a heading, as pages that
// present an offer do. The headings of an article are siblings of its paragraphs.
func (c *classifier) hasParts(root int) bool {
	parents, headings := map[int]bool{}, 0
	for i := root; i < c.tree.End(root); i++ {
		if c.flags[i]&(gone|aside) != 0 {
			continue
		}
		switch c.tree.Node(i).DataAtom {
		case atom.H2, atom.H3, atom.H4, atom.H5:
			headings++
			parents[c.tree.Parent(i)] = true
		}
	}
	return len(parents) >= 3 && 3*len(parents) >= 2*headings && c.plain(root) < int32(headings*maxEntry)
}

// heaviestArticle returns the article with most good passages, and the weight of those of all outermost articles.
func (d *document) heaviestArticle() (best int, all int32) {
	end := 0
	for _, i := range d.articles {
		if d.flags[i]&(gone|aside) != 0 {
			continue
		}
		good := d.goodOf(i)
		if i >= end {
			all += good
			end = d.tree.End(i)
		}
		if good > 0 && (best == 0 || good > d.goodOf(best) || 10*good >= 9*d.goodOf(best) && i < d.tree.End(best)) {
			best = i
		}
	}
	return best, all
}

var (
	// manuals are generators of documentation.
	manuals = []string{"sphinx", "docutils", "mkdocs", "doxygen", "docusaurus", "docbook", "javadoc", "mdbook",
		"gitbook", "antora", "asciidoc", "texinfo", "makeinfo", "pkgdown", "vuepress", "rustdoc", "yard",
		"dokuwiki"}
	// wikis are programs for wikis; their pages have neither author nor date.
	wikis = []string{"mediawiki", "xwiki", "wiki.js", "moinmoin", "twiki"}
	// builders are programs that build pages of boxes.
	builders = []string{"elementor", "webflow", "wix.com", "squarespace", "divi", "duda", "jimdo", "weebly"}
)

// hasGenerator reports whether the page names one of some generators.
func (h *head) hasGenerator(names []string) bool {
	for _, name := range names {
		if strings.Contains(h.generator, name) {
			return true
		}
	}
	return false
}
