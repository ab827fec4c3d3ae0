package maintext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// minWeight is a weight in Latin letters. Below it, a text in JSON-LD may replace a main text. If a page has it without
// a layer or comments, these are not the main text.
const minWeight = 250

// readText sets the main text. It tries less likely parts of a page until it finds text: a page with visible text
// always has a main text. If the page shows less text than its JSON-LD has, as a page filled by scripts does, it uses
// the latter.
func (d *document) readText(t *Text, c *classifier, k kind, data string) {
	t.Text = d.textOf(k, d.headlines(t))
	if shown := weigh(t.Text); shown < minWeight && shown < weigh(data) {
		t.Text = data
		d.found = nil
		return
	}
	for _, more := range []*bool{&d.noscript, &d.shown} {
		if t.Text != "" && (more != &d.noscript || !d.hasMoreWithoutScript(weigh(t.Text))) {
			return
		}
		*more = true
		d.scan()
		d.markAsides(k)
		d.sumPassages()
		t.Text = d.textOf(c.kindOf(k), d.headlines(t))
	}
}

// hasMoreWithoutScript reports whether a page with little text has its text in noscript elements, as forums that are
// drawn by scripts do.
func (d *document) hasMoreWithoutScript(shown int) bool {
	if shown >= minWeight {
		return false
	}
	hidden := 0
	for i := range d.flags {
		if n := d.tree.Node(i); n.DataAtom == atom.Noscript {
			for c := range d.near(n) {
				if c.Type == html.TextNode {
					hidden += weigh(c.Data)
				}
			}
		}
	}
	return hidden >= minWeight && hidden > 4*shown
}

// textOf returns the text of a page of a kind. If there is none, it returns the menus, the asides, or the headings.
func (d *document) textOf(k kind, headings map[string]bool) string {
	d.out.tiles = k == product
	text := d.write(d.roots(k), k == documentation || k == listing, k != articleKind, headings)
	d.out.tiles = false
	for _, also := range []flag{dropped, dropped | aside} {
		if text == "" {
			d.restore(also)
			text = d.write([]int{0}, true, true, headings)
		}
	}
	return text
}

// restore clears flags of all nodes.
func (d *document) restore(f flag) {
	for i := range d.flags {
		d.flags[i] &^= f
	}
}

// write writes the text of nodes, and records them for Markdown.
func (d *document) write(roots []int, lists, trailing bool, headings map[string]bool) string {
	w := &d.out
	w.reset(d)
	w.lists, w.trailing, w.headings = lists, trailing, headings
	for _, root := range roots {
		w.write(root)
	}
	d.found = roots
	return w.finish()
}

// sumPassages sums the good passages with the greatest minimum weight of which there are any.
func (d *document) sumPassages() {
	for _, least := range []int32{sentence, words, letter} {
		if d.sumGood(least); d.goodOf(0) > 0 {
			return
		}
	}
}

// maxHeadlines bounds the headings that are compared with the beginning of the text.
const maxHeadlines = 256

// headlines returns the headings that the text must not begin with: the headline, the title and the first h1 elements.
func (d *document) headlines(t *Text) map[string]bool {
	all := map[string]bool{t.Headline: true, t.Title: true}
	for i := range d.flags {
		if len(all) >= maxHeadlines {
			break
		}
		if n := d.tree.Node(i); n.DataAtom == atom.H1 && d.flags[i]&gone == 0 {
			all[d.headingOf(n)] = true
		}
	}
	delete(all, "")
	return all
}

// headlineFromTitle returns the title without the site's name, which usually follows the last separator.
func (h *head) headlineFromTitle() string {
	for _, sign := range []string{" | ", " - ", " – ", " — ", " :: ", " » "} {
		at := strings.LastIndex(h.title, sign)
		if at > 0 && len(strings.Fields(h.title[:at])) >= 3 && at > len(h.title)-at {
			return h.title[:at]
		}
	}
	return h.title
}
