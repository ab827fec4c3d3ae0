package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A ResultsConfig provides the nodes' reports on the crawl, in the caller's encoding. Both functions are nil, or none
// is.
type ResultsConfig struct {
	Own func() []byte // this node's report; nil: there is none yet
	// returns one report of all: of present nodes or parts, and of nodes that have gone
	Merge func(present, gone [][]byte) []byte
}

const (
	resultsEvery  = 30 * time.Second
	resultsResend = 10        // rounds until all reports are sent again: messages may be lost
	maxResult     = 256 << 10 // bytes of a report of a node; a longer one is not kept for others
	maxResults    = 1 << 8    // reports that are kept; beyond, those of the farthest eighth of nodes are dropped
	maxWhole      = 1 << 20   // bytes of a report of many nodes
	// A version is a time in Unix milliseconds. One that is further ahead of this node's clock is refused.
	maxResultAhead = 10 * time.Minute
)

// GatherResults requests one report of all nodes, those that have gone included. GatheredResults answers.
type GatherResults struct {
	Tag    uint64
	Spread bool // all nodes get it by a Results action, if no part is missing
}

// GatheredResults answers GatherResults.
type GatheredResults struct {
	Tag     uint64
	Data    []byte
	Missing int // parts of the space for which no node has answered
}

// Results passes on the report of all nodes that another node has gathered.
type Results struct {
	Nodes int // that have answered
	Data  []byte
}

func (GatherResults) event()    {}
func (GatheredResults) action() {}
func (Results) action()         {}

// A Result is the last report of a node.
type Result struct {
	Version uint64 // the later one has the greater version
	Data    []byte
}

// results keep the reports of nodes on the crawl, so that the report of all includes departed nodes.
//
// As counts do, each node sends its report to the nodes closest to it (messageResult), when it has changed, and before
// it leaves. The node closest to the id of a departed node adds that node's report.
//
// A member may send made-up reports of other nodes. A node accepts none of itself. Versions are bounded, so that a later
// report of the node itself soon replaces a made-up one.
//
// Invariant: a node's report is only replaced by a later one. At most maxResults are kept.
type results struct {
	core   *core
	place  *place
	cfg    ResultsConfig
	pages  func() int64 // fetched by this node
	byNode map[strategy.Node]*result
	shared int64 // pages of this node when its report was last renewed
	rounds int
	last   uint64 // version of this node's report
}

type result struct {
	Result
	id    xor.ID
	known []strategy.Node // nodes that have it
}

// newResults returns results with those of an earlier process.
func newResults(c *core, p *place, cfg ResultsConfig, pages func() int64, earlier map[strategy.Node]Result) *results {
	s := &results{core: c, place: p, cfg: cfg, pages: pages, byNode: map[strategy.Node]*result{}, shared: -1}
	if pages == nil {
		s.cfg = ResultsConfig{}
	}
	if s.cfg.Own != nil {
		for _, node := range slices.Sorted(maps.Keys(earlier)) {
			s.put(node, earlier[node], c.self)
		}
	}
	return s
}

// start shares the node's report every resultsEvery.
func (s *results) start() {
	if s.cfg.Own != nil {
		s.core.after(resultsEvery, s.run)
	}
}

func (s *results) run() {
	s.core.after(resultsEvery, s.run)
	if s.rounds++; s.rounds%resultsResend == 0 {
		for _, r := range s.byNode {
			r.known = nil
		}
	}
	if s.pages() != s.shared {
		s.renew()
	}
	s.send()
}

// renew makes this node's report the latest.
func (s *results) renew() {
	if s.cfg.Own == nil {
		return
	}
	s.shared = s.pages()
	if data := s.cfg.Own(); data != nil {
		s.last = max(s.last+1, s.version(0))
		switch r := s.byNode[s.core.self]; {
		case r == nil:
		case r.Version > s.version(maxResultAhead): // this machine's clock was wrong: other nodes have refused it
			delete(s.byNode, s.core.self)
		default:
			s.last = max(s.last, r.Version+1)
		}
		s.put(s.core.self, Result{s.last, data}, s.core.self)
	}
}

// version returns the version of a report at a time from now.
func (s *results) version(ahead time.Duration) uint64 {
	return uint64(max(s.core.now.Add(ahead).UnixMilli(), 0))
}

func (s *results) put(node strategy.Node, r Result, by strategy.Node) {
	k := s.byNode[node]
	if k == nil {
		k = &result{id: s.place.nodeID(node)}
		s.byNode[node] = k
	}
	if r.Version > k.Version {
		k.Result, k.known = r, nil
	}
	if r.Version == k.Version && by != s.core.self && !slices.Contains(k.known, by) {
		k.known = append(k.known, by)
	}
	if len(s.byNode) > maxResults {
		all := slices.SortedFunc(maps.Keys(s.byNode), func(a, b strategy.Node) int {
			return xor.Compare(s.byNode[a].id, s.byNode[b].id, s.place.id)
		})
		for _, node := range all[len(all)-len(all)/8:] {
			delete(s.byNode, node)
		}
	}
}

// send sends reports to the keepers that may not have them. It reports whether there were any.
func (s *results) send() (sent bool) {
	for _, node := range slices.Sorted(maps.Keys(s.byNode)) {
		r := s.byNode[node]
		if len(r.Data) > maxResult {
			continue
		}
		for _, to := range s.place.keepers(node, r.id) {
			if slices.Contains(r.known, to) {
				continue
			}
			r.known, sent = append(r.known, to), true
			w := varint.Writer{messageResult}
			w.String(string(node))
			w.Uint(r.Version)
			w.Bytes(r.Data)
			s.core.do(Send{To: to, Data: w})
		}
	}
	return sent
}

// receive processes a messageResult.
func (s *results) receive(from strategy.Node, r *varint.Reader) error {
	node, x := strategy.Node(r.String()), Result{Version: r.Uint(), Data: r.Bytes()}
	if !r.Complete() || len(node) > maxName || len(x.Data) > maxResult {
		return errMessage
	}
	if s.cfg.Own != nil && node != s.core.self && x.Version <= s.version(maxResultAhead) {
		s.put(node, x, from)
	}
	return nil
}

// own returns one report of this node and of the departed ones to which it is the closest.
func (s *results) own() []byte {
	if s.cfg.Own == nil {
		return nil
	}
	var present, gone [][]byte
	if data := s.cfg.Own(); data != nil {
		present = append(present, data)
	} else if r := s.byNode[s.core.self]; r != nil { // of an earlier process
		present = append(present, r.Data)
	}
	for _, node := range slices.Sorted(maps.Keys(s.byNode)) {
		if r := s.byNode[node]; node != s.core.self && s.place.closest(r.id) {
			gone = append(gone, r.Data)
		}
	}
	return s.cfg.Merge(present, gone)
}

// all returns the reports, to be stored for the next process. The caller does not change them.
func (s *results) all() map[strategy.Node]Result {
	all := make(map[strategy.Node]Result, len(s.byNode))
	for node, r := range s.byNode {
		all[node] = r.Result
	}
	return all
}
