package mesh

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// What is known only by all nodes together is gathered over a tree that the buckets make: who asks for all ids hands
// each of its buckets to one node in it, which answers for all ids of that bucket, and hands on those of its own
// buckets that lie within. So each node is asked once, and nobody sends to more than there are buckets. Who does not
// answer is replaced by another node of its bucket. Nobody is asked of a bucket that is empty.

// A Tally is what nodes say of themselves, added up.
type Tally struct {
	Nodes   int
	Missing int    // parts of the space for which nobody has answered
	Idle    int    // nodes that have nothing to do, and nothing on its way to others
	Bereft  int    // nodes that wait for others, of whom they know, and who do not answer
	Print   uint64 // another one as soon as something has come to one of the nodes, or one has begun anew
	// nodes that have gone, and how many pages these have fetched, as far as it is known; those of a node that has died
	// are missing until its neighbours have found that
	Gone      int
	GonePages int64
	Figures   []int64  // the caller's, added
	Max       []uint64 // the caller's, the greatest of each
	// the caller's, one of each node; of some nodes only, where they are more than MaxReports, or of more bytes than
	// MaxReportBytes
	Reports [][]byte
}

// Bounds of a Tally's Reports.
const (
	MaxReports     = 64
	MaxReportBytes = 16 << 10
)

func (t *Tally) add(o Tally) {
	t.Nodes += o.Nodes
	t.Missing += o.Missing
	t.Idle += o.Idle
	t.Bereft += o.Bereft
	t.Print += o.Print
	t.Gone += o.Gone
	t.GonePages += o.GonePages
	for i, n := range o.Figures {
		if i == len(t.Figures) {
			t.Figures = append(t.Figures, 0)
		}
		t.Figures[i] += n
	}
	for i, n := range o.Max {
		if i == len(t.Max) {
			t.Max = append(t.Max, 0)
		}
		t.Max[i] = max(t.Max[i], n)
	}
	left := MaxReportBytes
	for _, r := range t.Reports {
		left -= len(r)
	}
	for _, r := range o.Reports {
		if left -= len(r); left < 0 || len(t.Reports) >= MaxReports {
			break
		}
		t.Reports = append(t.Reports, r)
	}
}

const (
	gatherFor   = 20 * time.Second // after which what is missing is missing
	gatherLess  = time.Second      // has who is asked less than who asks, so that there is time for the answer
	gatherEvery = time.Second      // those who have not answered are asked again
	gatherTries = 3                // questions without any answer until another node is asked
	maxGathers  = 256              // under way, and answers that are kept for who asks again
	maxFigures  = 64
)

type gatherKey struct {
	from strategy.Node
	id   uint64
}

// A gathering is a tally that is being added up.
type gathering struct {
	key   gatherKey
	asks  bool // for reports
	sum   Tally
	parts []*part
	over  bool
	ended time.Time
	then  func(Tally) // where it began here
}

// A part is a bucket, and who is asked to answer for it.
type part struct {
	id     uint64
	index  int
	to     strategy.Node
	asked  []strategy.Node
	silent int // questions since it said anything
	done   bool
}

// gather adds up what all nodes say, with what each says of itself if reports is true, and calls f with it.
func (m *Machine) gather(reports bool, f func(Tally)) {
	m.last++
	g := &gathering{key: gatherKey{m.cfg.Self, m.last}, asks: reports, then: f}
	m.beginGathering(g, m.cfg.Width, gatherFor)
}

// beginGathering asks for all buckets below an index.
func (m *Machine) beginGathering(g *gathering, below int, left time.Duration) {
	m.gatherings[g.key] = g
	if g.sum = m.own(); g.asks && m.cfg.Report != nil {
		if r := m.cfg.Report(); len(r) <= MaxReportBytes {
			g.sum.Reports = [][]byte{r}
		}
	}
	for i := m.lowest(); i < m.lowest()+below; i++ {
		if nodes := m.cfg.Overlay.Bucket(i); len(nodes) > 0 {
			m.last++
			g.parts = append(g.parts, &part{id: m.last, index: i})
		}
	}
	g.ended = m.now.Add(left)
	m.askParts(g)
}

// lowest is the index of the last bit that counts.
func (m *Machine) lowest() int { return len(m.id)*8 - m.cfg.Width }

// own is what this node says of itself.
func (m *Machine) own() Tally {
	t := Tally{Nodes: 1}
	if m.cfg.Figures != nil {
		t.Figures, t.Max = m.cfg.Figures()
	}
	m.countGone(&t)
	rests, came := m.engine()
	if rests && m.Idle() {
		t.Idle = 1
	}
	if m.absent.bereft(m.now) {
		t.Bereft = 1
	}
	t.Print = mix(m.cfg.Process ^ mix(came))
	return t
}

// engine reports whether nothing waits in the engine, and how often something was brought to this node.
func (m *Machine) engine() (rests bool, came uint64) {
	if m.cfg.Engine == nil {
		return true, m.came
	}
	rests, came = m.cfg.Engine()
	return rests, came + m.came
}

// mix is a number that looks random (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// askParts asks those who have not answered, and ends a gathering that is whole, or late.
func (m *Machine) askParts(g *gathering) {
	if g.over {
		return
	}
	late := !m.now.Before(g.ended)
	open := false
	for _, p := range g.parts {
		if p.done {
			continue
		}
		if late {
			p.done = true
			g.sum.Missing++
			continue
		}
		if p.to == "" || p.silent >= gatherTries {
			if p.to != "" {
				m.do(Doubt{Node: p.to})
				p.asked = append(p.asked, p.to)
				p.to, p.silent = "", 0
			}
			nodes := m.cfg.Overlay.Bucket(p.index)
			i := slices.IndexFunc(nodes, func(n strategy.Node) bool { return !slices.Contains(p.asked, n) })
			switch {
			case len(nodes) == 0: // who was there is gone
				p.done = true
				g.sum.Missing++
				continue
			case i < 0: // none of them answers, and those who are dead are gone soon
				p.asked = nil
				open = true
				continue
			}
			p.to = nodes[i]
		}
		open = true
		p.silent++
		w := varint.Writer{messageGather}
		w.Uint(p.id)
		w.Uint(uint64(p.index - m.lowest()))
		w.Uint(uint64(max(g.ended.Sub(m.now)-gatherLess, 0) / time.Millisecond))
		w.Bool(g.asks)
		m.do(Send{To: p.to, Data: w})
	}
	if !open {
		m.endGathering(g)
		return
	}
	m.after(gatherEvery, func() { m.askParts(g) })
}

func (m *Machine) endGathering(g *gathering) {
	g.over = true
	if g.then != nil {
		delete(m.gatherings, g.key)
		g.then(g.sum)
		return
	}
	m.tellTally(g)
	m.after(gatherFor, func() { delete(m.gatherings, g.key) }) // the answer may be lost
}

func (m *Machine) tellTally(g *gathering) {
	w := varint.Writer{messageTally}
	w.Uint(g.key.id)
	w.Bool(g.over)
	if t := &g.sum; g.over {
		w.Uint(uint64(t.Nodes))
		w.Uint(uint64(t.Missing))
		w.Uint(uint64(t.Idle))
		w.Uint(uint64(t.Bereft))
		w.Uint(t.Print)
		w.Uint(uint64(t.Gone))
		w.Uint(uint64(t.GonePages))
		w.Uint(uint64(len(t.Figures)))
		for _, n := range t.Figures {
			w.Int(n)
		}
		w.Uint(uint64(len(t.Max)))
		for _, n := range t.Max {
			w.Uint(n)
		}
		w.Uint(uint64(len(t.Reports)))
		for _, r := range t.Reports {
			w.Bytes(r)
		}
	}
	m.do(Send{To: g.key.from, Data: w})
}

// askedGather answers for a part of the space.
func (m *Machine) askedGather(from strategy.Node, r *varint.Reader) error {
	key := gatherKey{from, r.Uint()}
	below, left, reports := r.Uint(), r.Uint(), r.Bool()
	if !r.Whole() || below > uint64(m.cfg.Width) || left > uint64(gatherFor/time.Millisecond) {
		return errMessage
	}
	g := m.gatherings[key]
	switch {
	case g == nil && len(m.gatherings) < maxGathers:
		m.beginGathering(&gathering{key: key, asks: reports}, int(below), time.Duration(left)*time.Millisecond)
		if g = m.gatherings[key]; !g.over {
			m.tellTally(g)
		}
	case g != nil:
		m.tellTally(g)
	}
	return nil
}

// tally takes an answer, or word that there will be one.
func (m *Machine) tally(from strategy.Node, id uint64, r *varint.Reader) error {
	var t Tally
	over := r.Bool()
	if over {
		t = Tally{Nodes: int(r.Uint() % (1 << 40)), Missing: int(r.Uint() % (1 << 40)), Idle: int(r.Uint() % (1 << 40)),
			Bereft: int(r.Uint() % (1 << 40)), Print: r.Uint(), Gone: int(r.Uint() % (1 << 40)),
			GonePages: int64(r.Uint() % (1 << 60))}
		n := r.Uint()
		if n > maxFigures {
			return errMessage
		}
		for range n {
			t.Figures = append(t.Figures, r.Int())
		}
		if n = r.Uint(); n > maxFigures {
			return errMessage
		}
		for range n {
			t.Max = append(t.Max, r.Uint())
		}
		if n = r.Uint(); n > MaxReports {
			return errMessage
		}
		size := 0
		for range n {
			b := r.Bytes()
			if size += len(b); size > MaxReportBytes {
				return errMessage
			}
			t.Reports = append(t.Reports, b)
		}
	}
	if !r.Whole() {
		return errMessage
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.gatherings), compareGathers) {
		g := m.gatherings[key]
		for _, p := range g.parts {
			if p.id != id || p.to != from || p.done || g.over {
				continue
			}
			if p.silent = 0; over {
				p.done = true
				g.sum.add(t)
				if !slices.ContainsFunc(g.parts, func(p *part) bool { return !p.done }) {
					m.endGathering(g)
				}
			}
			return nil
		}
	}
	return nil
}

func compareGathers(a, b gatherKey) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.id, b.id))
}
