package maintext

import (
	"cmp"
	"strings"
	"sync"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/content/fields/tree"
)

// flag is a property of a node.
type flag uint16

const (
	gone      flag = 1 << iota // the node and its descendants are not displayed, or not text
	candidate                  // aside if the element does not have most of the text
	aside                      // the node and its descendants are not main text
	dropped                    // text that the writer excluded
	article
	mainPart // main or role=main
	layout   // a table that is used for layout instead of data
	pre
	inMath
	post // of a thread
	declaredDate
	slug        // the id repeats the element's heading
	productItem // a product in microdata
)

// sums are totals over the text before a node, without what is gone.
type sums struct {
	text  int32 // weight
	link  int32 // weight in links
	prose int32 // weight in paragraphs, without links
	signs int32 // letters and digits outside of links
	links int32 // number of links
}

// A document is a parsed page with sums over its nodes in document order. The descendants of a node are a contiguous
// range, so the sums of a subtree take constant time.
type document struct {
	parser *tree.Parser
	known  nameCache

	tree     *tree.Tree
	shown    bool // hidden elements are read, too
	noscript bool // noscript elements are read, too
	flags    []flag
	names    []names
	sums     []sums  // one more than nodes
	good     []int32 // weight of the good passages before a node; one more than nodes
	articles []int
	main     int            // the first main part; 0: none
	h1       int            // the first h1 that is displayed; 0: none
	posts    map[string]int // number of elements with the class of a post
	isManual bool           // an element has the name of a documentation generator
	adds     []int32
	out      writer
	found    []int // nodes with the main text; nil: it is not from the tree
	visits   int   // nodes that near has yielded
}

// documents pools documents, whose slices and tree have the size of a large page.
var documents = sync.Pool{New: func() any {
	return &document{parser: tree.New(maxNodes), known: nameCache{}, posts: map[string]int{}}
}}

// parse builds the tree.
func (d *document) parse(page string) {
	d.tree = d.parser.Parse(page, false)
	d.shown, d.noscript, d.visits = false, false, 0
	n := d.tree.Nodes()
	d.flags, d.names = resized(d.flags, n), resized(d.names, n)
	d.sums, d.good = resized(d.sums, n+1), resized(d.good, n+1)
	d.adds = resized(d.adds, n)
}

// release drops all references to the page and returns the document to the pool.
func (d *document) release() {
	d.tree = d.parser.Parse("", false)
	clear(d.posts)
	documents.Put(d)
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	s = s[:n]
	clear(s)
	return s
}

// A scanner marks nodes and computes sums in one pass.
type scanner struct {
	*document
	sum                         sums
	link, paragraph, code, math int // end of the innermost of these elements
	tables                      []openTable
}

type openTable struct {
	node, end            int
	blocks, inner, heads bool
}

// scan marks nodes and computes the sums.
func (d *document) scan() {
	clear(d.flags)
	clear(d.posts)
	d.articles, d.main, d.h1, d.isManual = d.articles[:0], 0, 0, false
	s := scanner{document: d}
	n := d.tree.Nodes()
	for i := 0; i < n; i++ {
		d.sums[i] = s.sum
		node := d.tree.Node(i)
		if i < s.code {
			d.flags[i] |= pre
		}
		if i < s.math {
			d.flags[i] |= inMath
		}
		switch node.Type {
		case html.TextNode:
			s.text(i, node.Data)
		case html.ElementNode:
			if !s.element(i, node) {
				end := d.tree.End(i)
				for d.flags[i] |= gone; i < end-1; {
					i++
					d.sums[i] = s.sum
					d.flags[i] |= gone
				}
			}
		}
	}
	d.sums[n] = s.sum
	s.endTables(n)
}

func (s *scanner) text(i int, text string) {
	w, signs := measure(text)
	if signs == 0 {
		return
	}
	s.sum.text += int32(w)
	switch {
	case i < s.link:
		s.sum.link += int32(w)
	default:
		s.sum.signs += int32(signs)
		if i < s.paragraph {
			s.sum.prose += int32(w)
		}
	}
}

// element reports whether the content of an element is text.
func (s *scanner) element(i int, n *html.Node) bool {
	s.endTables(i)
	if !s.attributes(i, n) {
		return false
	}
	end := s.tree.End(i)
	switch n.DataAtom {
	case atom.Noscript:
		return s.noscript
	case atom.A:
		if isSelfLink(n) {
			return false
		}
		if end > s.link && s.tree.Node(i).FirstChild != nil {
			for _, a := range n.Attr {
				if a.Key == "href" {
					s.link = end
					s.sum.links++
				}
			}
		}
	case atom.P:
		s.paragraph = max(s.paragraph, end)
	case atom.Pre:
		s.code = max(s.code, end)
		s.flags[i] |= pre
	case atom.Math:
		s.math = max(s.math, end)
	case atom.H1:
		s.h1 = cmp.Or(s.h1, i)
	case atom.Article:
		s.flags[i] |= article
	case atom.Main:
		s.flags[i] |= mainPart
	}
	s.inTable(i, end, n.DataAtom)
	if s.flags[i]&article != 0 {
		s.articles = append(s.articles, i)
	}
	if s.flags[i]&mainPart != 0 && s.main == 0 {
		s.main = i
	}
	switch styleOf(n.DataAtom) {
	case removed:
		if isTeX(n) {
			s.flags[i] |= inMath
			return true
		}
		return i < s.math && n.DataAtom != atom.Annotation && n.DataAtom != atom.AnnotationXml
	case boiler:
		s.flags[i] |= candidate
	}
	return true
}

// inTable records what an element says of the tables around it.
func (s *scanner) inTable(i, end int, a atom.Atom) {
	last := len(s.tables) - 1
	if last >= 0 {
		switch a {
		case atom.P, atom.Hr, atom.Div:
			s.tables[last].blocks = s.tables[last].blocks || a != atom.Div
		case atom.H1, atom.H2, atom.Article, atom.Table:
			s.tables[last].inner = true
		case atom.Th, atom.Caption, atom.Thead:
			s.tables[last].heads = true
		}
	}
	if a == atom.Table {
		s.tables = append(s.tables, openTable{node: i, end: end})
	}
}

// endTables decides of the tables that end before a node whether they are used for layout: they contain headings or
// tables, or paragraphs and no header cells.
func (s *scanner) endTables(i int) {
	for last := len(s.tables) - 1; last >= 0 && s.tables[last].end <= i; last-- {
		t := s.tables[last]
		if t.inner || t.blocks && !t.heads && !s.isGrid(t.node) {
			s.flags[t.node] |= layout
		}
		s.tables = s.tables[:last]
	}
}

// isGrid reports whether a table has several rows of equally many short cells: data, although the cells have paragraphs.
func (d *document) isGrid(table int) bool {
	rows, columns, cells := 0, 0, 0
	for i := table + 1; i < d.tree.End(table); i++ {
		switch d.tree.Node(i).DataAtom {
		case atom.Tr:
			if rows++; rows == 2 {
				columns = cells
			}
			if rows > 2 && cells != columns {
				return false
			}
			cells = 0
		case atom.Td:
			if cells++; d.sums[d.tree.End(i)].text-d.sums[i].text > maxGridCell {
				return false
			}
			i = d.tree.End(i) - 1
		}
	}
	return rows >= 2 && columns >= 2 && cells == columns
}

// maxGridCell is the weight of a cell up to which it is data rather than a part of the page.
const maxGridCell = 120

// isGutter reports whether a cell has the numbers of lines of code.
func isGutter(class string) bool {
	return strings.Contains(class, "gutter") || strings.Contains(class, "ln-numbers")
}

// attributes reads an element's attributes. It reports whether the element is displayed.
func (s *scanner) attributes(i int, n *html.Node) bool {
	s.names[i] = 0
	stays := n.DataAtom == atom.Body || n.DataAtom == atom.Html || n.DataAtom == atom.Main || n.DataAtom == atom.Article
	for j := range n.Attr {
		a := &n.Attr[j]
		switch a.Key {
		case "class", "id":
			is := s.known.of(a.Val)
			if a.Key == "id" && is&(asideName|commentName) != 0 && s.isSlug(n, a.Val) {
				s.flags[i] |= slug
			}
			if a.Key == "id" {
				is &^= partNames(n.DataAtom)
			}
			s.names[i] |= is
			s.isManual = s.isManual || is&manualName != 0
			if is&(asideName|layerName|commentName|metaName|reviewName|signatureName|contentsName) != 0 &&
				!stays && i >= s.code {
				s.flags[i] |= candidate
			}
			if is&numbersName != 0 && n.DataAtom != atom.Pre && n.DataAtom != atom.Code || n.DataAtom == atom.Td && isGutter(a.Val) {
				if last := len(s.tables) - 1; last >= 0 {
					s.tables[last].inner = true // a table of line numbers and code
				}
				return false
			}
			if is&(postName|commentName) != 0 && a.Key == "class" && len(a.Val) <= maxNameLen && n.DataAtom != atom.P {
				s.posts[a.Val]++
				s.flags[i] |= post
			}
		case "itemprop":
			s.names[i] |= s.known.of(a.Val)
			if a.Val == "articleBody" {
				s.flags[i] |= article
			}
			if a.Val == "datePublished" {
				s.flags[i] |= declaredDate
			}
		case "itemtype":
			if _, name, _ := strings.Cut(a.Val, "schema.org/"); name != "" {
				switch is := typeOf(name); {
				case is&productType != 0:
					s.flags[i] |= productItem
				case is&articleType != 0 && n.DataAtom != atom.Body && n.DataAtom != atom.Html:
					s.flags[i] |= article
				}
			}
		case "role":
			switch {
			case a.Val == "main":
				s.flags[i] |= mainPart
			case a.Val == "article":
				s.flags[i] |= article
			case a.Val == "presentation" || a.Val == "none":
				if n.DataAtom == atom.Table {
					s.flags[i] |= layout
				}
			case asideRoles[a.Val] && !stays:
				s.flags[i] |= candidate
			}
		case "hidden", "aria-hidden", "style":
			if !s.shown && isHidden(a) && !isStreamed(n) && !stays && !hasMath(n) {
				return false
			}
		}
	}
	return true
}

// partNames returns the names that mean nothing in the id of an element, because it is usually that of a part of the
// text: datetime.date, http.cookies.
func partNames(a atom.Atom) names {
	switch a {
	case atom.Dt, atom.Dd, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return metaName | asideName | layerName | commentName
	case atom.Li, atom.Section, atom.A:
		return metaName
	}
	return 0
}

var asideRoles = wordSet(`
	navigation banner contentinfo complementary dialog alertdialog search menu menubar form note`)

// isHidden reports whether an attribute hides its element.
func isHidden(a *html.Attribute) bool {
	switch a.Key {
	case "hidden":
		return !strings.EqualFold(a.Val, "until-found")
	case "aria-hidden":
		return a.Val == "true"
	}
	return hasDeclaration(a.Val, "display", "none") || hasDeclaration(a.Val, "visibility", "hidden")
}

// hasDeclaration reports whether a style attribute sets a property to a value.
func hasDeclaration(css, property, value string) bool {
	for {
		_, rest, found := strings.Cut(css, property)
		if !found {
			return false
		}
		rest = strings.TrimLeft(rest, " \t\n")
		if strings.HasPrefix(rest, ":") && strings.HasPrefix(strings.TrimLeft(rest[1:], " \t\n"), value) {
			return true
		}
		css = rest
	}
}

// isSlug reports whether an id repeats the heading at the beginning of its section, as documentation generators derive
// it. In long ones, words such as "sharing" or "navigation" are those of the heading.
func (d *document) isSlug(n *html.Node, id string) bool {
	if strings.Count(id, "-") >= 3 {
		return true
	}
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode && c.DataAtom != atom.Span {
			return isHeading(c.DataAtom) && letters(d.headingOf(c)) == letters(id)
		}
	}
	return false
}

// letters returns the ASCII letters of a text in lower case.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r | 0x20
		}
		return -1
	}, s)
}

// isStreamed reports whether a hidden element is content that a script moves to its place, as React's server does.
func isStreamed(n *html.Node) bool { return strings.HasPrefix(attr(n, "id"), "S:") }

// isSelfLink reports whether a link is a heading's link to itself.
func isSelfLink(a *html.Node) bool {
	c := a.FirstChild
	if c == nil || c != a.LastChild || len(c.Data) > 4 || !strings.Contains(attr(a, "href"), "#") {
		return false
	}
	return c.Data == "¶" || c.Data == "#" || c.Data == "§" || c.Data == "\uF0C1"
}

// between returns the sums of the node at i and its descendants.
func (d *document) between(i int) sums {
	a, b := d.sums[i], d.sums[d.tree.End(i)]
	return sums{b.text - a.text, b.link - a.link, b.prose - a.prose, b.signs - a.signs, b.links - a.links}
}

// plain returns the weight of the text of a node outside of links.
func (d *document) plain(i int) int32 {
	s := d.between(i)
	return s.text - s.link
}

// markAsides decides which candidates are asides. A header with prose is not, since that is usually an article's first
// paragraph, and an element with most of the page's text is not, unless it is a layer above the page or comments.
func (d *document) markAsides(k kind) {
	all := d.plain(0)
	n := d.tree.Nodes()
	for i := 0; i < n; i++ {
		if d.flags[i]&candidate == 0 || d.flags[i]&gone != 0 {
			continue
		}
		if !d.isAside(i, all, k) {
			continue
		}
		for end := d.tree.End(i); i < end; i++ {
			d.flags[i] |= aside
		}
		i--
	}
}

func (d *document) isAside(i int, all int32, k kind) bool {
	node, is := d.tree.Node(i), d.names[i]
	end := d.tree.End(i)
	if d.main > i && d.main < end {
		return false
	}
	if k == documentation && d.main > 0 && d.main < i && i < d.tree.End(d.main) {
		if d.h1 > i && d.h1 < end && is&commentName == 0 {
			return false // the section of the module http.cookies
		}
		if node.DataAtom == atom.Section && is&(layerName|asideName|commentName) == layerName && attr(node, "role") == "" {
			return false
		}
		if s := d.between(i); node.DataAtom == atom.Aside && is&(layerName|commentName) == 0 && 2*s.link < s.text {
			return false // a footnote or a box in the text
		}
	}
	if d.flags[i]&slug != 0 && !hasPosts(d, i) && (k == documentation || is&commentName == 0 && strings.Count(attr(node, "id"), "-") >= 3) {
		return false
	}
	if styleOf(node.DataAtom) == block && k == thread && is&commentName != 0 && is&(asideName|layerName|metaName) == 0 {
		return false
	}
	if is&metaName != 0 && is&(asideName|layerName|commentName) == 0 && styleOf(node.DataAtom) != boiler {
		return styleOf(node.DataAtom) == block && d.between(i).text < longMeta
	}
	if is&contentsName != 0 && is&(asideName|layerName|commentName|metaName) == 0 && styleOf(node.DataAtom) == block {
		return linksWithin(d, i)
	}
	if is&(reviewName|signatureName) != 0 && is&(asideName|layerName|commentName|metaName) == 0 &&
		styleOf(node.DataAtom) != boiler {
		// Reviews are comments on a product, and signatures are those of posters.
		if is&reviewName != 0 && k != product || is&reviewName == 0 && k != thread {
			return false
		}
	}
	if node.DataAtom == atom.Header && is&layerName == 0 {
		return d.between(i).prose == 0 && !headsPart(d, i)
	}
	if is&(layerName|commentName|reviewName) != 0 && all-d.plain(i) >= minWeight {
		return true
	}
	return 2*d.plain(i) <= all || 3*d.between(i).text <= d.between(0).text
}

// longMeta is the weight from which a line about the text is text.
const longMeta = 150

// skips reports whether the writer skips a node.
func (d *document) skips(i int) bool { return d.flags[i]&(gone|aside|dropped) != 0 }
