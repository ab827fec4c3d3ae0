package entry

import (
	"encoding/binary"
	"math"

	"kumo/internal/base/item"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
)

// A Candidate is a link that is judged. Its item has the path of the page that has the link.
type Candidate struct {
	Host string
	Item item.Item
	policy.Verdict

	// What the link adds to the importance of its URL, where the crawl goes by that; see [rank.Order]. The tag tells it
	// from what others add to the same URL, so that a link that comes twice adds once.
	Worth float32
	Tag   uint32
}

// WithHop is a candidate's item with the path of its own.
func (c *Candidate) WithHop() item.Item {
	it := c.Item
	if hop := it.Kind.Hop(); hop != 0 && len(it.Path) < MaxPath {
		it.Path += string(hop)
	}
	return it
}

// MaxPath is how many hops a path has at the most: as many as crawl.log has.
const MaxPath = 50

// Candidate is a URL that seen has yet to decide about, with its verdict.
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

// worthLen is how long a candidate's worth is as it is written, with the tag.
const worthLen = 8

// Candidate reads a candidate, with which what there is to be read ends.
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

// StateFor is what a URL of that verdict is to be known as. What is left out can still be brought in: by a seed that
// names it, or by a scope that has grown.
func StateFor(v policy.Verdict) seen.State {
	if v.Rule == "" {
		return seen.Known
	}
	return seen.Deferred
}
