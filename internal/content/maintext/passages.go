package maintext

import (
	"golang.org/x/net/html"
)

// Minimum weights of good passages, tried in this order: a sentence, a few words, any text. The next is tried if no
// passage has the weight.
const (
	sentence = 30
	words    = 8
	letter   = 1
)

// sumGood computes the weights of the good passages: text between two block boundaries that is long enough and mostly
// not in links, outside of asides. Length and link density separate prose from menus and labels: Kohlschütter,
// Fankhauser, Nejdl, "Boilerplate Detection using Shallow Text Features", WSDM 2010.
func (d *document) sumGood(least int32) {
	n := d.tree.Nodes()
	clear(d.adds)
	first := 0 // node where the passage begins
	flush := func(end int) {
		a, b := d.sums[first], d.sums[end]
		text, link := b.text-a.text, b.link-a.link
		if text >= least && 3*link < text {
			d.adds[first] = text - link
		}
		first = end
	}
	var ends []int // of open blocks
	for i := 0; i < n; i++ {
		for len(ends) > 0 && ends[len(ends)-1] <= i {
			flush(i)
			ends = ends[:len(ends)-1]
		}
		if d.flags[i]&(gone|aside) != 0 {
			flush(i)
			i = d.tree.End(i) - 1
			first = i + 1
			continue
		}
		node := d.tree.Node(i)
		if node.Type != html.ElementNode || d.flags[i]&inMath != 0 {
			continue
		}
		switch styleOf(node.DataAtom) {
		case inline:
		case lineBreak:
			flush(i)
		default:
			flush(i)
			ends = append(ends, d.tree.End(i))
		}
	}
	flush(n)
	sum := int32(0)
	for i := range n {
		d.good[i] = sum
		sum += d.adds[i]
	}
	d.good[n] = sum
}

// goodOf returns the weight of the good passages in a node.
func (d *document) goodOf(i int) int32 { return d.good[d.tree.End(i)] - d.good[i] }
