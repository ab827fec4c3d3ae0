package entry

import (
	"encoding/binary"
	"math"

	"kumo/internal/base/item"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
)

// A Candidate is a link with its verdict. Its item has the path of the page that contains the link.
type Candidate struct {
	Host string
	Item item.Item
	policy.Verdict

	// Worth is the importance that the link adds to its URL, if the crawl's order uses links; see [rank.Order]. The tag
	// distinguishes it from the contributions of other links, so that a link that arrives twice counts once.
	Worth float32
	Tag   uint32
}

// WithHop returns the candidate's item with its own path, one hop longer than the page's.
func (c *Candidate) WithHop() item.Item {
	it := c.Item
	if hop := it.Kind.Hop(); hop != 0 && len(it.Path) < MaxPath {
		it.Path += string(hop)
	}
	return it
}

// MaxPath is the maximum number of hops in a path, the same as in crawl.log.
const MaxPath = 50

// Candidate writes a candidate with its verdict.
func (e *Encoder) Candidate(c *Candidate) {
	e.Item(&c.Item)
	e.String(c.Rule)
	e.String(c.Why)
	e.Bool(c.Deferred)
	if c.Worth != 0 {
		e.Writer = binary.LittleEndian.AppendUint32(e.Writer, math.Float32bits(c.Worth))
		e.Writer = binary.LittleEndian.AppendUint32(e.Writer, c.Tag)
	}
}

// worthLen is the encoded length of a candidate's worth and tag.
const worthLen = 8

// Candidate reads a candidate. It must be the last field.
func (d *Decoder) Candidate() Candidate {
	it := d.Item("")
	c := Candidate{Host: it.Host(), Item: it, Verdict: policy.Verdict{Rule: d.String(), Why: d.String(),
		Deferred: d.Bool()}}
	if len(d.Rest) == worthLen && !d.Bad {
		c.Worth = math.Float32frombits(binary.LittleEndian.Uint32(d.Rest))
		c.Tag = binary.LittleEndian.Uint32(d.Rest[4:])
		d.Rest = nil
	}
	return c
}

// StateFor returns the state in which a URL with this verdict is stored. An excluded URL can still be admitted later,
// by a seed that names it or by a wider scope.
func StateFor(v policy.Verdict) seen.State {
	if v.Rule == "" {
		return seen.Known
	}
	return seen.Deferred
}
