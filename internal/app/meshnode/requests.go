package meshnode

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/strategy"
)

// What a node is asked, by people through its control server, or by the process it runs in. All of it may be called by
// any goroutine; what waits for Run's loop ends with ctx, or with errNodeEnded when Run does.

var _ control.Node = (*Node)(nil)

var errNodeEnded = errors.New("the node has ended")

// Crawl is the crawl's record as this node knows it, and its version; 0 where nobody has made one yet.
func (n *Node) Crawl() (desired.Record, uint64) { return n.watcher.record() }

// Change makes a new version of the record of the newest one that there is. It returns when that is durable here. f is
// called by the loop, and must not wait; an error of it is returned. A node that has heard of no other yet, though
// there are some, waits until it has: what it knows may be old.
func (n *Node) Change(ctx context.Context, f func(r *desired.Record, version uint64) error) error {
	if err := n.inbox.call(ctx, func() <-chan struct{} { return n.watcher.synced }); err != nil {
		return fmt.Errorf("change the crawl's record before the other nodes were heard: %w", err)
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

// ErrTooMany is a crawl that has as many lists of seeds as one may have.
var ErrTooMany = fmt.Errorf("the crawl has %d lists of seeds, and cannot have more: give more seeds at once",
	mesh.MaxChunks)

// AddSeeds adds URLs, a line each, which all nodes come to know. It returns when they are durable here.
func (n *Node) AddSeeds(ctx context.Context, lines string) error {
	for chunk := range desired.SeedLists(strings.SplitSeq(lines, "\n")) {
		if len(chunk) >= mesh.MaxChunk { // the first byte says what kind of chunk it is
			return errors.New("a seed is longer than a list of seeds may be")
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

// SeedChunks is how many lists of seeds this node knows.
func (n *Node) SeedChunks() int { return int(n.watcher.seeds.Load()) }

// Gather adds up what all nodes say of themselves: it takes a second or two, more where nodes have just died. The
// figures are those of control.Sums; the reports are of type control.Report.
func (n *Node) Gather(ctx context.Context) (mesh.Tally, error) {
	return await(ctx, n.inbox, func(answer func(mesh.Tally)) { n.queries.gather(true, answer) })
}

// await has the loop ask, and waits for the answer.
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

// Locate finds the nodes of a host: the one that fetches it, "" where nobody answers, and those that remember its URLs.
func (n *Node) Locate(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error) {
	l, err := await(ctx, n.inbox, func(answer func(mesh.Located)) { n.queries.locate(host, answer) })
	return l.Target, l.Backups, err
}

// Synced is closed when this process knows what others had come to know of the crawl before it began.
func (n *Node) Synced() <-chan struct{} { return n.watcher.synced }

// Alone reports whether this node knows no other one.
func (n *Node) Alone() bool { return n.loop.alone.Load() }

// Leave asks the node to give all it has to others. Run returns ErrLeft then, or ErrAlone if there is nobody, and none
// of those who died lately comes back.
func (n *Node) Leave() { n.inbox.post(n.loop.leave) }

// queries are the questions to all nodes that the peer has yet to answer. They are the loop's.
type queries struct {
	step    func(peer.Event) // the loop's
	last    uint64           // tag
	gathers map[uint64]func(mesh.Tally)
	locates map[uint64]func(mesh.Located)
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
