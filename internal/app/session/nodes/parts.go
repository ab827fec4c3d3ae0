package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/nodequery"
	"kumo/internal/app/session"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/stream"
	"kumo/internal/state/recovery"
	"kumo/internal/state/transfer"
)

func (m *membership) ship(ctx context.Context, local journal.Journal) (journal.Journal, error) {
	j, err := stream.Open(ctx, local, m.bus, logOf(m.id.Node()), stream.Config{Warn: m.n.warn})
	if errors.Is(err, stream.ErrSealed) {
		return nil, fmt.Errorf("%w: %w", node.ErrLost, err)
	}
	if err != nil {
		return nil, err
	}
	// Complete transfers from other nodes are acknowledged from the local journal. So the log must have them, too,
	// before this process can die.
	if err := j.Ship(ctx, j.End()); err != nil {
		err = errors.Join(err, j.Close())
		if errors.Is(err, stream.ErrSealed) {
			return nil, fmt.Errorf("%w: %w", node.ErrLost, err)
		}
		return nil, err
	}
	m.journal = j
	return j, nil
}

func logOf(n strategy.Node) string { return "journal/" + string(n) }

// A journalLagGuard is a router that blocks requests while the log lags. If a node that cannot replicate its journal is
// declared dead, its pages are fetched again; it could otherwise continue for as long as its lease lasts.
type journalLagGuard struct {
	crawl.Router
	log interface{ Late() bool }
}

func (p journalLagGuard) May(host string) bool { return p.Router.May(host) && !p.log.Late() }

func (m *membership) join(state *recovery.State, p *crawl.Parts) error {
	n := m.n
	one, placing := n.Joining(quorum.Config{Self: m.id.Node(), Instance: rand.Uint64() | 1, Joined: m.id.Joined,
		Received: state.Arrived(), Forgotten: state.Went(), Partial: state.Partial(), Layout: n.Layout, Timing: n.Timing,
		Seed: rand.Uint64()})
	m.node = node.New(node.Config{
		Crawl:    node.CrawlWord(m.job.Name),
		Identity: m.id,
		Member:   one,
		Strategy: placing,
		Timing:   n.Timing,
		Bus:      m.bus,
		Engine:   m.engine,
		Router:   m.router,
		FailedNodes: &failedNodes{disk: m.folder.Disk, dir: m.failedDir(), bus: m.bus, job: m.job,
			sender: m.sinks.sender, places: failedPlaces{Node: n, bus: m.bus}},
		SaveJoined: m.saveJoined, Figures: m.figures, Work: m.work, OnEnd: m.journal.BeginShutdown,
		ApplySettings: m.applySettings, IsKnown: m.isKnown,
		PendingLinks: m.pendingLinks,
		Query:        m.query,
		Version:      job.Version, Address: n.Address, Browser: n.Browser, Server: n.cluster.Address(), Drain: n.Leave,
		LeaseExpired: func() { n.expired.Add(1) }, Log: n.Log,
	})
	if c, is := m.upload.uploader.(session.StateUploader); is && m.job.Writes(job.WARC) {
		p.Checkpointed = c.Cut(m.journal, n.warn, m.sinks.hasSent)
	}
	p.Router = journalLagGuard{m.router, m.journal}
	if n.Turns != nil {
		p.Turns, p.Resources = n.Turns, n.Resources
	}
	p.IsElsewhere = func(host string) bool { return m.router.IsElsewhere(m.id.Node(), host) }
	p.TransferReceived = func(t member.Transfer, hosts []string) {
		m.moved.Add(int64(len(hosts)))
		m.node.Arrived(t, hosts)
	}
	p.NewScopeSeed = func(u weburl.URL) { m.node.NewScopeSeed(u.String()) }
	p.Listener = crawl.Tee(p.Listener, crawl.Listener{Visited: func(*page.Record) { m.router.Ended() },
		Retried: func(*page.Record, time.Duration) { m.router.Ended() }})
	return nil
}

func (m *membership) saveJoined() error {
	m.n.home.keep.Store(true)
	m.joined.Store(true)
	id := m.id // a copy: other goroutines read m.id
	id.Joined = true
	return id.Save(m.n.disk, m.folder.Path("state", folder.NodeFile))
}

func (m *membership) query(ctx context.Context, query json.RawMessage) ([]byte, error) {
	return (&nodequery.Part{Dir: m.job.Dir, CountBlocked: m.crawl.CountBlocked}).Answer(ctx, query)
}

func (m *membership) isKnown(url string) (mine, known bool, err error) {
	u, err := weburl.Parse(url)
	if err != nil {
		return false, false, err
	}
	return m.crawl.Engine.Inspector.Knows(u)
}

// pendingLinks returns the number of links that wait until the URL's host has an owner.
func (m *membership) pendingLinks(url string) int {
	u, err := weburl.Parse(url)
	if err != nil {
		return 0
	}
	return m.crawl.Engine.Links.WaitingFor(u)
}

// An engine combines the parts of a crawl's engine that a node uses.
type engine struct {
	*crawl.Engine
	*crawl.Links
	*crawl.Seeding
	*crawl.Inspector
	*transfer.Endpoint
	sender session.Sender // nil: the crawl has no sinks
	turns  Turns          // nil: no other crawl visits the hosts
}

// Share sets the number of frontiers that may have hosts at the same addresses: at least one for each node.
func (e *engine) Share(nodes int) {
	if e.turns != nil {
		nodes = max(nodes, e.turns.Frontiers())
	}
	e.Engine.Share(nodes)
}

var _ node.Engine = (*engine)(nil)

// Idle reports whether nothing is left to do for the crawl, including records for sinks: the crawl is not done before
// they have them, because the pages of a node that dies with unsent records must be fetched again.
func (e *engine) Idle() bool { return e.Engine.Idle() && (e.sender == nil || e.sender.CaughtUp()) }

func (e *engine) Export(owner func(host string) strategy.Node) (driver.Export, error) {
	return asExport(e.Endpoint.Export(owner))
}

// Busy returns those of the hosts with a request in progress, each with a function that waits for its end.
func (e *engine) Busy(hosts []string) map[string]func(context.Context) error {
	busy := map[string]func(context.Context) error{}
	for host, over := range e.Engine.Busy(hosts) {
		busy[host] = func(ctx context.Context) error {
			select {
			case <-over:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return busy
}

// asExport avoids a non-nil interface with a nil pointer.
func asExport(x *transfer.Export, err error) (driver.Export, error) {
	if err != nil {
		return nil, err
	}
	return x, nil
}
