package meshnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/strategy"
)

// Requests to the node, from its control server or from its process. All methods are safe for concurrent use. Those
// that wait for Run's loop return when ctx ends, or errNodeEnded when Run does.

var _ control.Node = (*Node)(nil)

var errNodeEnded = errors.New("the node has ended")

// Crawl returns the crawl's record and its version as known to this node; version 0 if there is none yet.
func (n *Node) Crawl() (desired.Record, uint64) { return n.watcher.record() }

// Change creates a new version of the newest record, and returns when it is durable here. The loop calls f, which must
// not block; its error is returned. A node that has not caught up with existing nodes waits first, as its record may be
// outdated.
func (n *Node) Change(ctx context.Context, f func(r *desired.Record, version uint64) error) error {
	if err := n.inbox.call(ctx, func() <-chan struct{} { return n.watcher.synced }); err != nil {
		return fmt.Errorf("change the crawl's record before other nodes were reached: %w", err)
	}
	var failed error
	err := n.inbox.call(ctx, func() <-chan struct{} {
		if failed = n.watcher.change(f); failed != nil {
			return nil
		}
		return n.store.flushed()
	})
	return errors.Join(failed, err)
}

// ErrTooMany means that the crawl has the maximum number of lists of seeds.
var ErrTooMany = fmt.Errorf("the crawl has %d lists of seeds, the maximum: add more seeds at once",
	mesh.MaxChunks)

// AddSeeds adds URLs, one per line, for all nodes. It returns when they are durable here.
func (n *Node) AddSeeds(ctx context.Context, lines string) error {
	for chunk := range desired.SeedLists(strings.SplitSeq(lines, "\n")) {
		if len(chunk) >= mesh.MaxChunk { // one byte is needed for the kind of chunk
			return errors.New("a seed is too long")
		}
		full := false
		err := n.inbox.call(ctx, func() <-chan struct{} {
			if full = !n.watcher.add(kindSeeds, chunk); full {
				return nil
			}
			return n.store.flushed()
		})
		if full {
			err = ErrTooMany
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SeedChunks returns the number of known lists of seeds.
func (n *Node) SeedChunks() int { return int(n.watcher.seeds.Load()) }

// Gather sums up the reports of all nodes. It takes a second or two, more after failures. The figures are those of
// control.Sums; the reports are of type control.Report.
func (n *Node) Gather(ctx context.Context) (mesh.Tally, error) {
	return await(ctx, n.inbox, func(answer func(mesh.Tally)) { n.queries.gather(true, answer) })
}

// await sends a query in the loop, and waits for the result.
func await[T any](ctx context.Context, b *inbox, ask func(answer func(T))) (T, error) {
	var got T
	done := make(chan struct{})
	err := b.call(ctx, func() <-chan struct{} {
		ask(func(answer T) {
			got = answer
			close(done)
		})
		return done
	})
	if err != nil {
		return *new(T), err
	}
	return got, nil
}

// Locate returns the nodes of a host: the node that fetches it, "" if none answers, and the nodes that remember its
// URLs.
func (n *Node) Locate(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error) {
	l, err := await(ctx, n.inbox, func(answer func(mesh.Located)) { n.queries.locate(host, answer) })
	return l.Target, l.Backups, err
}

// Synced is closed when this process has caught up with the other nodes.
func (n *Node) Synced() <-chan struct{} { return n.watcher.synced }

// Alone reports whether this node knows no other one.
func (n *Node) Alone() bool { return n.loop.alone.Load() }

// Leave starts the transfer of all data to other nodes. Run then returns ErrLeft, or ErrAlone if there are none, and no
// recently failed one returns.
func (n *Node) Leave() { n.inbox.post(n.loop.leave) }

// queries are the peer's pending queries to all nodes. They belong to the loop.
type queries struct {
	step    func(peer.Event) // the loop's step
	last    uint64           // tag of the last query
	gathers map[uint64]func(mesh.Tally)
	locates map[uint64]func(mesh.Located)
	results map[uint64]func(mesh.GatheredResults)
}

func (q *queries) gather(reports bool, f func(mesh.Tally)) {
	q.last++
	q.gathers[q.last] = f
	q.step(mesh.Gather{Tag: q.last, Reports: reports})
}

func (q *queries) locate(host string, f func(mesh.Located)) {
	q.last++
	q.locates[q.last] = f
	q.step(mesh.Locate{Tag: q.last, Host: host})
}

// gatherResults has the nodes' reports on the crawl merged. If spread is true, all nodes get the result.
func (q *queries) gatherResults(spread bool, f func(mesh.GatheredResults)) {
	q.last++
	q.results[q.last] = f
	q.step(mesh.GatherResults{Tag: q.last, Spread: spread})
}

func (q *queries) gatheredResults(a mesh.GatheredResults) {
	if f := q.results[a.Tag]; f != nil {
		delete(q.results, a.Tag)
		f(a)
	}
}

func (q *queries) gathered(a mesh.Gathered) {
	if f := q.gathers[a.Tag]; f != nil {
		delete(q.gathers, a.Tag)
		f(a.Tally)
	}
}

func (q *queries) located(a mesh.Located) {
	if f := q.locates[a.Tag]; f != nil {
		delete(q.locates, a.Tag)
		f(a)
	}
}

// Silence returns the time since the loop last came around, normally less than a second; 0 if it does not run.
func (n *Node) Silence() time.Duration { return n.loop.heartbeat.Silence() }
