package meshnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/member/mesh"
)

// resultReports provides and merges the nodes' reports on the crawl. It belongs to the loop.
type resultReports struct {
	report func() *stats.Report // of this node; nil: there is none yet
	log    *slog.Logger
}

// own returns this node's report, as other nodes need it.
func (x *resultReports) own() []byte {
	r := x.report()
	if r == nil {
		return nil
	}
	r.Shorten()
	return x.encode(r)
}

func (x *resultReports) encode(r *stats.Report) []byte {
	data, err := json.Marshal(r)
	if err != nil {
		x.log.Warn("encode a report on the crawl", "err", err)
		return nil
	}
	return data
}

// merge returns one report of present nodes or parts, and of nodes that have gone and have passed on their URLs.
func (x *resultReports) merge(present, gone [][]byte) []byte {
	var all []*stats.Report
	for i, data := range append(present[:len(present):len(present)], gone...) {
		r := new(stats.Report)
		if err := json.Unmarshal(data, r); err != nil {
			x.log.Warn("a node's report on the crawl is left out: it cannot be read", "err", err)
			continue
		}
		if i >= len(present) {
			r.WithoutState()
		}
		all = append(all, r)
	}
	sum := stats.Merge(all)
	data := x.encode(sum)
	if len(data) > maxMerged {
		sum.Shorten()
		data = x.encode(sum)
	}
	return data
}

// maxMerged is the size in bytes above which a report of many nodes is shortened.
const maxMerged = 512 << 10

// Results returns one report of all nodes, as JSON, and the number of parts of the space for which no node has answered.
func (n *Node) Results(ctx context.Context) (data []byte, missing int, err error) {
	a, err := await(ctx, n.inbox, func(answer func(mesh.GatheredResults)) { n.queries.gatherResults(false, answer) })
	if err == nil && a.Data == nil {
		err = errors.New("this node does not report on the crawl")
	}
	return a.Data, a.Missing, err
}

// endResults is the interval at which the nodes of an ending crawl get the report of all.
const endResults = time.Second

// shareResults has all nodes write the report of all while the crawl is ending. Only the node that detects the end does
// so: each node would have to ask all others.
func (f *recordWatcher) shareResults(now time.Time) {
	if f.endTimer == nil || f.l.cfg.Report == nil || now.Sub(f.resultsShared) < endResults ||
		!f.l.peer.Machine().DetectsEnd() {
		return
	}
	f.resultsShared = now
	f.queries.gatherResults(true, func(mesh.GatheredResults) {})
}

// A resultSaver passes reports of all nodes to Config.SaveReport, one at a time. If several arrive meanwhile, it saves
// the last one. Once nodes of an ended crawl have ended, later reports have fewer nodes: these replace no better ones.
type resultSaver struct {
	cfg   *Config
	tasks *tasks

	mu     sync.Mutex     // guards below
	nodes  int            // of the last accepted report
	next   *pendingReport // nil: none
	saving bool           // a task saves reports
}

type pendingReport struct {
	data  []byte
	ended string
}

// reset accepts the next report of any number of nodes: the crawl continues.
func (s *resultSaver) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = 0
}

// save has a report saved, unless an earlier one had more nodes. ended is the reason for the crawl's end.
func (s *resultSaver) save(all mesh.Results, ended string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.SaveReport == nil || all.Nodes < s.nodes {
		return
	}
	s.nodes, s.next = all.Nodes, &pendingReport{all.Data, ended}
	if !s.saving {
		s.saving = true
		s.tasks.run("write the report of all nodes", s.run)
	}
}

// run saves the pending reports.
func (s *resultSaver) run(context.Context) error {
	for {
		s.mu.Lock()
		p := s.next
		s.next, s.saving = nil, p != nil
		s.mu.Unlock()
		if p == nil {
			return nil
		}
		all := new(stats.Report)
		if err := json.Unmarshal(p.data, all); err != nil {
			s.cfg.Log.Warn("the report of all nodes is not written: it cannot be read", "err", err)
			continue
		}
		all.Ended = p.ended
		s.cfg.SaveReport(all)
	}
}

// saveResults saves the report of all nodes.
func (l *loop) saveResults(all mesh.Results) {
	r := l.watcher.known.Load().record
	ended := string(r.State)
	if r.Why != "" {
		ended += fmt.Sprintf(" (%s)", r.Why)
	}
	l.results.save(all, ended)
}
