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
	Pages   PageTally // in a division of the page limit
	Results []byte    // of the caller: one report of all
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
	t.Pages.add(o.Pages)
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

// A query is what a gathering requests.
type query struct {
	kind     byte
	division division // with queryPages
}

// The kinds of queries.
const (
	querySums    = iota
	queryReports // also the nodes' reports
	queryPages   // also the nodes' parts in a division of the page limit
	queryResults // also one report of all nodes on the crawl
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
	// its part in a division of the page limit, and what receives its grant
	pages  func(*division, gatherKey) PageTally
	accept func(gatherKey, int64)
	// its report on the crawl, with those of departed nodes, and what merges reports; nil if this node does not report
	results func() []byte
	merge   func(present, gone [][]byte) []byte
	all     map[gatherKey]*gathering
}

type gatherKey struct {
	from strategy.Node
	id   uint64
}

// A gathering is a tally that is being added up.
type gathering struct {
	key     gatherKey
	query   query
	sum     Tally
	parts   []*part
	over    bool
	ends    time.Time
	then    func(*gathering) // called at the end, if the gathering began here
	need    int64            // pages that this node requests
	granted bool             // to this node and the parts: pages, or the report of all nodes
	results [][]byte         // reports of the parts
}

// A part is a bucket, and the node that is queried for it.
type part struct {
	id         uint64
	bucket     int // counted from the lowest one
	to         strategy.Node
	asked      []strategy.Node
	unanswered int // queries since the last answer
	done       bool
	need       int64 // pages that its nodes request
}

// gather adds up all nodes' tallies, with their reports if reports is true, and calls f with the sum.
func (s *gatherings) gather(reports bool, f func(Tally)) {
	q := query{kind: querySums}
	if reports {
		q.kind = queryReports
	}
	s.gatherAll(q, func(g *gathering) { f(g.sum) })
}

// gatherPages also adds up the nodes' parts in a division of the page limit.
func (s *gatherings) gatherPages(d division, f func(*gathering)) {
	s.gatherAll(query{kind: queryPages, division: d}, f)
}

func (s *gatherings) gatherAll(q query, f func(*gathering)) {
	g := &gathering{key: gatherKey{s.core.self, s.core.number()}, query: q, then: f}
	s.begin(g, s.place.width, gatherFor)
}

// begin requests the tallies of the given number of lowest buckets.
func (s *gatherings) begin(g *gathering, buckets int, left time.Duration) {
	s.all[g.key] = g
	g.sum = s.own()
	switch {
	case g.query.kind == queryReports && s.report != nil:
		if r := s.report(); len(r) <= MaxReportBytes {
			g.sum.Reports = [][]byte{r}
		}
	case g.query.kind == queryPages && s.pages != nil:
		g.sum.Pages = s.pages(&g.query.division, g.key)
		g.need = g.sum.Pages.Need
	case g.query.kind == queryResults && s.results != nil:
		g.results = append(g.results, s.results())
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
	w.Byte(g.query.kind)
	if g.query.kind == queryPages {
		g.query.division.append(&w)
	}
	s.core.do(Send{To: p.to, Data: w})
}

func (s *gatherings) end(g *gathering) {
	g.over = true
	if len(g.results) > 0 {
		g.sum.Results = s.merge(g.results, nil)
		g.results = nil
	}
	if g.then != nil {
		delete(s.all, g.key)
		g.then(g)
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
	buckets, left, q := r.Uint(), r.Uint(), query{kind: r.Byte()}
	if q.kind == queryPages {
		q.division.read(r)
	}
	if !r.Complete() || q.kind > queryResults || buckets > uint64(s.place.width) ||
		left > uint64(gatherFor/time.Millisecond) {
		return errMessage
	}
	g := s.all[key]
	switch {
	case g == nil && len(s.all) < maxGathers:
		g = &gathering{key: key, query: q}
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
				p.done, p.need = true, t.Pages.Need
				g.sum.add(t)
				if len(t.Results) > 0 && g.query.kind == queryResults && s.merge != nil {
					g.results = append(g.results, t.Results)
				}
				if !slices.ContainsFunc(g.parts, func(p *part) bool { return !p.done }) {
					s.end(g)
				}
			}
			return nil
		}
	}
	return nil
}

// grant divides pages among this node and the parts of a gathering.
func (s *gatherings) grant(g *gathering, pages int64) {
	if g.granted {
		return
	}
	g.granted = true
	needs := []int64{g.need}
	for _, p := range g.parts {
		needs = append(needs, p.need)
	}
	shares := splitGrant(pages, needs, int(s.core.number()%uint64(len(needs))))
	s.accept(g.key, shares[0])
	for i, p := range g.parts {
		if n := shares[1+i]; n > 0 {
			w := varint.Writer{messageGrant}
			w.Uint(p.id)
			w.Uint(uint64(n))
			s.core.do(Send{To: p.to, Data: w})
		}
	}
}

// granted processes a messageGrant: the answer to a tally of this node.
func (s *gatherings) granted(from strategy.Node, r *varint.Reader) error {
	key := gatherKey{from, r.Uint()}
	pages := int64(r.UintMax(maxPages))
	if !r.Complete() {
		return errMessage
	}
	if g := s.all[key]; g != nil && g.over && g.query.kind == queryPages {
		s.grant(g, pages)
	}
	return nil
}

// spread passes the report of all nodes on to the parts of a gathering.
func (s *gatherings) spread(g *gathering, all Results) {
	for _, p := range g.parts {
		if p.to == "" {
			continue
		}
		w := varint.Writer{messageWhole}
		w.Uint(p.id)
		w.Uint(uint64(all.Nodes))
		w.Bytes(all.Data)
		s.core.do(Send{To: p.to, Data: w})
	}
	s.core.do(all)
}

// received processes a messageWhole: the report of all nodes, including this one.
func (s *gatherings) received(from strategy.Node, r *varint.Reader) error {
	key := gatherKey{from, r.Uint()}
	all := Results{Nodes: int(r.UintMax(maxPages)), Data: r.Bytes()}
	if !r.Complete() || len(all.Data) > maxWhole {
		return errMessage
	}
	if g := s.all[key]; g != nil && g.over && g.query.kind == queryResults && !g.granted {
		g.granted = true
		s.spread(g, all)
	}
	return nil
}

// gatherResults also merges the nodes' reports on the crawl.
func (s *gatherings) gatherResults(e GatherResults) {
	s.gatherAll(query{kind: queryResults}, func(g *gathering) {
		s.core.do(GatheredResults{Tag: e.Tag, Data: g.sum.Results, Missing: g.sum.Missing})
		if e.Spread && g.sum.Missing == 0 && len(g.sum.Results) <= maxWhole {
			s.spread(g, Results{Nodes: g.sum.Nodes, Data: g.sum.Results})
		}
	})
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
	if t.Pages != (PageTally{}) || len(t.Results) > 0 {
		t.Pages.append(w)
		w.Bytes(t.Results)
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
	if len(r.Rest) > 0 {
		t.Pages.read(r)
		t.Results = r.Bytes()
	}
	return len(t.Results) <= maxWhole
}
