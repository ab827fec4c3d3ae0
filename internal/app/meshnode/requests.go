package meshnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// What a node is asked, by people through its control server, or by the process it runs in. All of it may be called by
// any goroutine; what waits for Run's loop ends with ctx, or with errOver when Run does.

var _ control.Node = (*Node)(nil)

var errOver = errors.New("the node has ended")

// call has f done by the loop, and waits for the channel that it returns, if that is not nil.
func (n *Node) call(ctx context.Context, f func() (until <-chan struct{})) error {
	until := make(chan (<-chan struct{}), 1)
	n.post(func() { until <- f() })
	var wait <-chan struct{}
	select {
	case wait = <-until:
	case <-n.over:
		return errOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if wait == nil {
		return nil
	}
	select {
	case <-wait:
		return nil
	case <-n.over:
		return errOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Crawl is the crawl's record as this node knows it, and its version; 0 where nobody has made one yet.
func (n *Node) Crawl() (desired.Record, uint64) {
	k := n.follow.known.Load()
	r := k.record
	r.Settings = cloneSettings(r.Settings)
	return r, k.version
}

// Change makes a new version of the record of the newest one that there is. It returns when that is durable here. f is
// called by the loop, and must not wait; an error of it is returned. A node that has heard of no other yet, though
// there are some, waits until it has: what it knows may be old.
func (n *Node) Change(ctx context.Context, f func(r *desired.Record, version uint64) error) error {
	if err := n.call(ctx, func() <-chan struct{} { return n.follow.inStep }); err != nil {
		return fmt.Errorf("change the crawl's record before the other nodes were heard: %w", err)
	}
	var failed error
	err := n.call(ctx, func() <-chan struct{} {
		if failed = n.follow.change(f); failed != nil {
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
		err := n.call(ctx, func() <-chan struct{} {
			if full = !n.follow.add(kindSeeds, chunk); full {
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
func (n *Node) SeedChunks() int { return int(n.follow.seeds.Load()) }

// Gather adds up what all nodes say of themselves: it takes a second or two, more where nodes have just died. The
// figures are those of control.Sums; the reports are of type control.Report.
func (n *Node) Gather(ctx context.Context) (t mesh.Tally, err error) {
	done := make(chan struct{})
	err = n.call(ctx, func() <-chan struct{} {
		n.gather(true, func(all mesh.Tally) {
			t = all
			close(done)
		})
		return done
	})
	if err != nil {
		return mesh.Tally{}, err
	}
	return t, nil
}

// gather is the loop's.
func (n *Node) gather(reports bool, f func(mesh.Tally)) {
	n.tag++
	n.gathers[n.tag] = f
	n.step(mesh.Gather{Tag: n.tag, Reports: reports})
}

// Locate finds the nodes of a host: the one that fetches it, "" where nobody answers, and those that remember its URLs.
func (n *Node) Locate(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error) {
	var l mesh.Located
	done := make(chan struct{})
	err = n.call(ctx, func() <-chan struct{} {
		n.tag++
		n.locates[n.tag] = func(found mesh.Located) {
			l = found
			close(done)
		}
		n.step(mesh.Locate{Tag: n.tag, Host: host})
		return done
	})
	if err != nil {
		return "", nil, err
	}
	return l.Target, l.Backups, nil
}

// InStep is closed when this process knows what others had come to know of the crawl before it began.
func (n *Node) InStep() <-chan struct{} { return n.follow.inStep }

// Alone reports whether this node knows no other one.
func (n *Node) Alone() bool { return n.alone.Load() }

// Leave asks the node to give all it has to others. Run returns ErrLeft then, or ErrAlone if there is nobody, and none
// of those who died lately comes back.
func (n *Node) Leave() {
	n.post(func() {
		if n.leaving {
			return
		}
		n.leaving = true
		if n.hasNobody() {
			n.stop(ErrAlone)
		} else {
			n.step(mesh.Leave{})
		}
	})
}

// hasNobody reports whether no other node is known, and none is waited for.
func (n *Node) hasNobody() bool {
	return n.peer.Overlay().Len() == 0 && n.until(n.peer.Machine().Awaited()) <= 0
}

// report is what this node says of itself to who gathers it.
func (n *Node) report() control.Report {
	var f Figures
	if n.cfg.Figures != nil {
		f = n.cfg.Figures()
	}
	idle, _ := n.rests()
	b := n.peer.Machine().Balance()
	alone := time.Duration(0)
	if lost := n.peer.Machine().Lost(); !lost.IsZero() {
		alone = max(-n.until(lost), time.Millisecond)
	}
	return control.Report{Node: string(n.self), Version: n.cfg.Version, Address: n.cfg.Address,
		State:  n.follow.known.Load().record.State,
		Member: n.engine() != nil && n.peer.Machine().Placed(), Idle: idle,
		Pages: f.Pages, Again: f.Again, Rate: f.Rate, Hosts: f.Hosts, Waiting: f.Waiting, Known: f.Known, Outbox: f.Outbox,
		InFlight: f.InFlight, MessageBytes: n.sent.Load(), Peers: f.Peers, Level: b.Level, Delegated: b.Delegated,
		Guests: b.Guests, Alone: alone.Seconds(), CutOff: f.CutOff, CutOffWhy: f.CutOffWhy,
		EndsIn: f.EndsIn, Growth: f.Growth, Forecast: f.Forecast, Stalled: f.Stalled, StalledBy: f.StalledBy,
		StallWhy: f.StallWhy, StallDo: f.StallDo, Clock: time.Now().UTC(), Events: n.chronicler.told(n.peer.Overlay().Size())}
}

func (n *Node) reportJSON() []byte {
	r := n.report()
	data, err := json.Marshal(&r)
	if err != nil {
		return nil // of plain fields
	}
	return data
}

func (n *Node) sums() (sums []int64, greatest []uint64) {
	r := n.report()
	sums = r.Figures()
	if n.cfg.Figures != nil {
		sums[control.SumBytes] = n.cfg.Figures().Bytes
	}
	return sums, nil
}
