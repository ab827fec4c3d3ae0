package meshnodes

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"kumo/internal/app/meshnode"
	"kumo/internal/app/meshnode/control"
	"kumo/internal/app/node"
	"kumo/internal/app/nodequery"
	"kumo/internal/app/session"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/recovery"
)

func (l *nodeRun) openCrawl() error {
	j := l.job
	j.Memory = j.MemoryBudget() * (historyShare - 1) / historyShare
	j.Crawl.KeepOpen, j.Crawl.Claims = true, true
	f := l.folder
	l.folder = nil // now owned by the session, or closed
	// It has connections to many nodes, like a server.
	c, err := l.Open(f, j, &session.ClusterHooks{Join: l.joinEngine, Server: true})
	if err != nil {
		return err
	}
	l.crawl.Store(c)
	return nil
}

func (l *nodeRun) joinEngine(_ *recovery.State, p *crawl.Parts) error {
	p.Router, p.Finished, p.Revisit = &l.router, l.mesh.Finished, l.mesh.Revisit
	if l.uploader != nil {
		p.AtRisk = l.atRisk
	}
	p.NewScopeSeed = func(u weburl.URL) { l.mesh.NewScopeSeed(u.String()) }
	return nil
}

func (l *nodeRun) query(ctx context.Context, query json.RawMessage) ([]byte, error) {
	c := l.crawl.Load()
	if c == nil {
		return nil, errNotBegun
	}
	return (&nodequery.Part{Dir: l.job.Dir, CountBlocked: c.CountBlocked}).Answer(ctx, query)
}

var errNotBegun = errors.New("this node has not started to crawl")

// applySettings applies the settings of the crawl's record that may change during the run.
func (l *nodeRun) applySettings(now map[string][]string) {
	c := l.crawl.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c == nil || l.ApplySettings == nil || maps.EqualFunc(now, l.settings, slices.Equal) {
		return
	}
	j := *l.job
	err := l.ApplySettings(&j, settings.FromMap(now))
	if err == nil {
		err = c.Tune(&j)
	}
	if err != nil {
		l.Log.Warn("cannot apply the crawl's new settings", "err", err)
		return
	}
	l.settings = now
}

// currentReport returns the node's report on the crawl; nil before it crawls.
func (l *nodeRun) currentReport() *stats.Report {
	if c := l.crawl.Load(); c != nil {
		return c.CurrentReport()
	}
	return nil
}

// saveReport writes the report of all nodes to the folder.
func (l *nodeRun) saveReport(all *stats.Report) {
	all.Crawl = l.job.Name
	if err := node.SaveResults(l.disk, l.job.Dir, all); err != nil {
		l.warn(err)
	}
}

// figures returns the work that the node reports.
func (l *nodeRun) figures() meshnode.Figures {
	peers := l.conn.Stats().Peers
	c := l.crawl.Load()
	if c == nil {
		return meshnode.Figures{Peers: peers}
	}
	totals, counts := c.Stats.Totals(), c.Frontier.Counts()
	links, _ := c.Engine.Links.Outbox()
	return meshnode.Figures{Work: control.Work{Pages: totals.Pages, Refetched: l.Refetched(), Rate: l.meter.rate(),
		Hosts: counts.Active + counts.Waiting + counts.Backing, Waiting: counts.URLs, Known: c.URLsKnown(), Outbox: links,
		InFlight: counts.Active}, Bytes: totals.Bytes, Peers: peers, Condition: c.Condition(time.Now())}
}
