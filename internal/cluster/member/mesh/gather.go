package mesh

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// A Tally is the sum of nodes' reports about themselves.
type Tally struct {
	Nodes   int
	Missing int // parts of the space for which no node has answered
	Idle    int // nodes that are idle, with nothing in transit to others
	// nodes that wait for nodes which they have met and which do not answer
	AwaitingPeers int
	Fingerprint   uint64 // changes when any node receives anything, or restarts
	// departed nodes, and how many pages they have fetched, as far as known; the pages of a dead node are missing until
	// its neighbors have noticed its death
	Departed      int
	DepartedPages int64
	Figures       []int64  // of the caller, added up
	Max           []uint64 // of the caller, the greatest of each
	// of the caller, one per node; only some nodes' if they exceed MaxReports or MaxReportBytes
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
	t.AwaitingPeers += o.AwaitingPeers
	t.Fingerprint += o.Fingerprint
	t.Departed += o.Departed
	t.DepartedPages += o.DepartedPages
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
	gatherFor    = 20 * time.Second // after this time, parts that have not answered count as missing
	gatherMargin = time.Second      // a queried node has less time than the querying one, so that its answer is in time
	gatherEvery  = time.Second      // nodes that have not answered are queried again
	gatherTries  = 3                // unanswered queries until another node is queried
	maxGathers   = 256              // running gatherings, and answers kept for repeated queries
	maxFigures   = 64
)

// gatherings add up all nodes' reports about themselves, over the tree that the buckets form.
//
// The node that begins queries one node of each of its buckets (messageGather). That node answers for all ids of the
// bucket (messageTally), and queries one node of each of its own buckets that lie within. So each node is queried once,
// and sends to at most as many nodes as it has buckets. A node that does not answer is replaced by another node of its
// bucket.
//
// Invariant: a gathering ends within gatherFor. Each part of the space is then either in the sum or counted as missing.
type gatherings struct {
	core   *core
	place  *place
	own    func() Tally  // this node's tally
	report func() []byte // its report; may be nil
	all    map[gatherKey]*gathering
}

type gatherKey struct {
	from strategy.Node
	id   uint64
}

// A gathering is a tally that is being added up.
type gathering struct {
	key     gatherKey
	reports bool // include reports
	sum     Tally
	parts   []*part
	over    bool
	ends    time.Time
	then    func(Tally) // called with the sum, if the gathering began here
}

// A part is a bucket, and the node that is queried for it.
type part struct {
	id         uint64
	bucket     int // counted from the lowest one
	to         strategy.Node
	asked      []strategy.Node
	unanswered int // queries since the last answer
	done       bool
}

// gather adds up all nodes' tallies, with their reports if reports is true, and calls f with the sum.
func (s *gatherings) gather(reports bool, f func(Tally)) {
	g := &gathering{key: gatherKey{s.core.self, s.core.number()}, reports: reports, then: f}
	s.begin(g, s.place.width, gatherFor)
}

// begin requests the tallies of the given number of lowest buckets.
func (s *gatherings) begin(g *gathering, buckets int, left time.Duration) {
	s.all[g.key] = g
	if g.sum = s.own(); g.reports && s.report != nil {
		if r := s.report(); len(r) <= MaxReportBytes {
			g.sum.Reports = [][]byte{r}
		}
	}
	s.place.eachLowBucket(buckets, func(i int, _ []strategy.Node) {
		g.parts = append(g.parts, &part{id: s.core.number(), bucket: i})
	})
	g.ends = s.core.now.Add(left)
	s.query(g)
}

// query queries the nodes that have not answered. It ends a gathering that is complete, or late.
func (s *gatherings) query(g *gathering) {
	if g.over {
		return
	}
	late := !s.core.now.Before(g.ends)
	open := false
	for _, p := range g.parts {
		if p.done {
			continue
		}
		if late || !s.choose(p) {
			p.done = true
			g.sum.Missing++
			continue
		}
		open = true
		if p.to != "" {
			p.unanswered++
			s.question(g, p)
		}
	}
	if !open {
		s.end(g)
		return
	}
	s.core.after(gatherEvery, func() { s.query(g) })
}

// choose chooses the node to query for a part: the same as before, unless it does not answer. It reports false if there
// is none left. If none of the known nodes answers, it chooses none for now: dead ones are removed soon.
func (s *gatherings) choose(p *part) bool {
	if p.to != "" && p.unanswered < gatherTries {
		return true
	}
	if p.to != "" {
		s.core.do(Suspect{Node: p.to})
		p.asked = append(p.asked, p.to)
		p.to, p.unanswered = "", 0
	}
	nodes := s.place.overlay.Bucket(s.place.lowest() + p.bucket)
	i := slices.IndexFunc(nodes, func(n strategy.Node) bool { return !slices.Contains(p.asked, n) })
	switch {
	case len(nodes) == 0:
		return false
	case i < 0:
		p.asked = nil
	default:
		p.to = nodes[i]
	}
	return true
}

func (s *gatherings) question(g *gathering, p *part) {
	w := varint.Writer{messageGather}
	w.Uint(p.id)
	w.Uint(uint64(p.bucket))
	w.Uint(uint64(max(g.ends.Sub(s.core.now)-gatherMargin, 0) / time.Millisecond))
	w.Bool(g.reports)
	s.core.do(Send{To: p.to, Data: w})
}

func (s *gatherings) end(g *gathering) {
	g.over = true
	if g.then != nil {
		delete(s.all, g.key)
		g.then(g.sum)
		return
	}
	s.answer(g)
	s.core.after(gatherFor, func() { delete(s.all, g.key) }) // the answer may be lost
}

// answer sends the sum, or that it will follow.
func (s *gatherings) answer(g *gathering) {
	w := varint.Writer{messageTally}
	w.Uint(g.key.id)
	w.Bool(g.over)
	if g.over {
		g.sum.append(&w)
	}
	s.core.do(Send{To: g.key.from, Data: w})
}

// asked processes a messageGather: this node answers for a part of the space.
func (s *gatherings) asked(from strategy.Node, r *varint.Reader) error {
	key := gatherKey{from, r.Uint()}
	buckets, left, reports := r.Uint(), r.Uint(), r.Bool()
	if !r.Complete() || buckets > uint64(s.place.width) || left > uint64(gatherFor/time.Millisecond) {
		return errMessage
	}
	g := s.all[key]
	switch {
	case g == nil && len(s.all) < maxGathers:
		g = &gathering{key: key, reports: reports}
		if s.begin(g, int(buckets), time.Duration(left)*time.Millisecond); !g.over {
			s.answer(g)
		}
	case g != nil:
		s.answer(g)
	}
	return nil
}

func (s *gatherings) answered(from strategy.Node, r *varint.Reader) error {
	id, over := r.Uint(), r.Bool()
	var t Tally
	if over && !t.read(r) || !r.Complete() {
		return errMessage
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.all), compareGathers) {
		g := s.all[key]
		for _, p := range g.parts {
			if p.id != id || p.to != from || p.done || g.over {
				continue
			}
			if p.unanswered = 0; over {
				p.done = true
				g.sum.add(t)
				if !slices.ContainsFunc(g.parts, func(p *part) bool { return !p.done }) {
					s.end(g)
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

func (t *Tally) append(w *varint.Writer) {
	for _, n := range []int{t.Nodes, t.Missing, t.Idle, t.AwaitingPeers} {
		w.Uint(uint64(n))
	}
	w.Uint(t.Fingerprint)
	w.Uint(uint64(t.Departed))
	w.Uint(uint64(t.DepartedPages))
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

// read decodes a tally. It reports false if that exceeds a bound.
func (t *Tally) read(r *varint.Reader) bool {
	count := func() int { return int(r.Uint() % (1 << 40)) }
	t.Nodes, t.Missing, t.Idle, t.AwaitingPeers = count(), count(), count(), count()
	t.Fingerprint, t.Departed, t.DepartedPages = r.Uint(), count(), int64(r.Uint()%(1<<60))
	n := r.Uint()
	if n > maxFigures {
		return false
	}
	for range n {
		t.Figures = append(t.Figures, r.Int())
	}
	if n = r.Uint(); n > maxFigures {
		return false
	}
	for range n {
		t.Max = append(t.Max, r.Uint())
	}
	if n = r.Uint(); n > MaxReports {
		return false
	}
	size := 0
	for range n {
		b := r.Bytes()
		if size += len(b); size > MaxReportBytes {
			return false
		}
		t.Reports = append(t.Reports, b)
	}
	return true
}
