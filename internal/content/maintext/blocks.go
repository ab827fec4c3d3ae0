package maintext

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Minimum weights of blocks, tried in this order: a sentence, a few words, any text. The next is tried if no block has
// the weight.
const (
	sentence = 30
	words    = 8
	letter   = 1
)

// A passage is the text between two block boundaries.
type passage struct {
	text          strings.Builder
	weight, links int // of the text, and of its part in links
}

// blocks returns the main text of a page that is too short for the library: the passages that are long enough, mostly
// not in links, and outside of asides. It returns "" if there are none.
func blocks(doc *html.Node) string {
	c := &collector{all: []*passage{{}}, prose: prose(doc)}
	c.walk(doc, false)
	levels := []int{sentence, words}
	if 2*c.links < c.weight { // beside a menu, a few letters are probably a label
		levels = append(levels, letter)
	}
	for _, least := range levels {
		var kept []string
		for _, p := range c.all {
			if p.weight >= least && p.links*3 < p.weight {
				kept = slices.AppendSeq(kept, linesOf(restoreLines(p.text.String())))
			}
		}
		if len(kept) > 0 {
			return strings.Join(kept, "\n")
		}
	}
	return ""
}

type collector struct {
	all           []*passage
	weight, links int // of all passages
	prose         int // weight of the page's prose; an element with more than half of it is never an aside
}

// prose returns the weight of the paragraphs below n without links.
func prose(n *html.Node) int { return paragraphWeight(descendants(n)) }

func paragraphWeight(nodes iter.Seq[*html.Node]) (sum int) {
	for d := range nodes {
		if d.DataAtom == atom.P {
			total, links := weighNode(d, false)
			sum += total - links
		}
	}
	return sum
}

func (c *collector) walk(n *html.Node, link bool) {
	switch {
	case n.Type == html.TextNode:
		c.add(n.Data, link)
		return
	case n.Type == html.ElementNode && isAside(n) && 2*prose(n) <= c.prose:
		return
	}
	edge := n.Type == html.ElementNode && !inline[n.Data]
	if edge {
		c.all = append(c.all, &passage{})
	}
	for child := range n.ChildNodes() {
		c.walk(child, link || n.DataAtom == atom.A)
	}
	if edge {
		c.all = append(c.all, &passage{})
	}
}

// add appends text to the last passage.
func (c *collector) add(text string, link bool) {
	p := c.all[len(c.all)-1]
	p.text.WriteString(text)
	w := weigh(text)
	p.weight += w
	c.weight += w
	if link {
		p.links += w
		c.links += w
	}
}

var asideTags = wordSet(`
	head script nav header footer aside form button select menu figure object address rt rp h1`)

var asideRoles = wordSet(`
	navigation banner contentinfo complementary dialog alertdialog search menu menubar form note`)

// asideNames are words in a class or id of elements that are not main text.
var asideNames = wordSet(`
	nav navbar navigation menu sidebar footer cookie cookies consent banner breadcrumb breadcrumbs share social
	comments related ad ads advert popup modal newsletter byline`)

// isAside reports whether an element is not main text according to its tag, role, class or id.
func isAside(n *html.Node) bool {
	if asideTags[n.Data] || asideRoles[attr(n, "role")] {
		return true
	}
	if n.Data == "body" || n.Data == "html" || n.Data == "main" || n.Data == "article" {
		return false
	}
	for _, a := range n.Attr {
		if a.Namespace != "" || a.Key != "class" && a.Key != "id" {
			continue
		}
		for name := range wordsOf(a.Val) {
			if asideNames[name] {
				return true
			}
		}
	}
	return false
}
