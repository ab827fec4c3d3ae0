package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// openCarrier prepares what brings this life's record files to a place, if they are to go to one. A place that fails
// ends a process that begins, so that a person sees it; one that was a member waits for it.
func (m *membership) openCarrier(ctx context.Context) (err error) {
	if m.n.Carry == nil {
		return nil
	}
	for again := lookAtState; ; again = min(2*again, time.Minute) {
		m.carriage.carrier, err = m.n.Carry(ctx, m.job, string(m.id.Node()))
		if err == nil || advice.IsUsage(err) || !m.n.home.kept.Load() {
			return err
		}
		m.n.Log.Warn("this node waits for the place of its record files", "next_try_in", again, "why", err)
		if err := wait.For(ctx, again); err != nil {
			return err
		}
	}
}

// beginCarrying starts the carrier when the node is a member: one that is refused leaves nothing in the place. An
// earlier process that was one has left files to bring.
func (m *membership) beginCarrying(ctx context.Context) {
	if m.carriage.carrier == nil {
		return
	}
	waiting, decide := context.WithCancel(context.Background())
	m.carriage.begun, m.carriage.decide = make(chan bool, 1), decide
	begin := func() {
		m.carriage.carrier.Start(context.WithoutCancel(ctx))
		m.carriage.begun <- true
	}
	if m.was {
		begin()
		return
	}
	go func() {
		select {
		case <-m.router.Joined():
			begin()
		case <-waiting.Done():
			select {
			case <-m.router.Joined(): // just now
				begin()
			default:
				m.carriage.begun <- false
			}
		}
	}()
}

// A carriage uploads a node's record files to a place, once it is decided that the node is a member.
type carriage struct {
	carrier session.Carrier // nil: they stay in the folder
	begun   chan bool       // holds, after the decision, whether the carrier was started; nil: no upload
	decide  context.CancelFunc
}

// end reports whether the carrier was started. Afterwards it is never started.
func (c *carriage) end() bool {
	if c.begun == nil {
		return false
	}
	c.decide()
	began := <-c.begun
	c.begun <- began
	return began
}

// publish tells the other nodes where the record files of this life go, before there are any: who folds what it held
// looks there for what need not be fetched again.
func (m *membership) publish(ctx context.Context) error {
	if m.carriage.carrier == nil {
		return nil
	}
	place, key := m.carriage.carrier.URL(), node.PlaceKey(m.id.Node())
	for {
		e, err := m.bus.Get(ctx, key)
		if err == nil && string(e.Value) != place {
			_, err = m.bus.Put(ctx, key, []byte(place), e.Revision)
		}
		if err == nil || !errors.Is(err, bus.ErrUnavailable) && !errors.Is(err, bus.ErrStale) {
			return err
		}
		if err := wait.For(ctx, lookAtState); err != nil {
			return err
		}
	}
}

// bring ends the bringing of a life that is over. One that others have given up, or that begins again, does not wait
// for its place, and one that was never taken in has nothing to bring.
func (m *membership) bring(ctx context.Context, ended error) error {
	defer m.n.finishing.Store(false)
	if m.carriage.carrier == nil || m.crawl == nil || !m.carriage.end() { // who was never a member has nothing to bring
		return ended
	}
	if errors.Is(ended, node.ErrLost) || errors.Is(ended, errSettings) || m.n.refused(ctx, ended) {
		m.carriage.carrier.Break()
		return ended
	}
	m.n.finishing.Store(true)
	stays := m.forget(ctx) // first: who is killed while it waits for the place leaves it there for good
	ended = session.Bring(ctx, m.carriage.carrier, ended)
	if stays != nil { // the place may work by now
		stays = m.forget(ctx)
	}
	if stays != nil {
		m.n.Log.Warn("what the place has of this node's state stays there", "place", m.carriage.carrier.URL(), "why", stays)
	}
	return ended
}

// forget removes what the place has of the node's state, if the log is gone that belongs to it.
func (m *membership) forget(ctx context.Context) error {
	c, is := m.carriage.carrier.(session.StateCarrier)
	if !is || !m.dropped {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return c.Forget(ctx)
}

// Bringing reports whether the node's part is over, and the rest of its record files is on its way to their place.
func (n *Node) Bringing() bool { return n.finishing.Load() }

// bringLost brings to their places what earlier lives have left in the folder that were given up, one after the other.
// They are no part of the crawl any more, and their records are good. What fails is tried again, until ctx ends.
func (n *Node) bringLost(ctx context.Context) {
	if n.Carry == nil {
		return
	}
	n.bringing.Lock()
	defer n.bringing.Unlock()
	for again := 5 * time.Second; !n.bringAll(ctx); again = min(2*again, 5*time.Minute) {
		if wait.For(ctx, again) != nil {
			return
		}
	}
}

// bringAll tries it once, and reports whether all is there.
func (n *Node) bringAll(ctx context.Context) (all bool) {
	all = true
	for _, dir := range n.unbrought() {
		if err := n.bringLife(ctx, dir); err != nil {
			all = false
			n.Log.Warn("what an earlier life has left is not in its place yet", "folder", dir, "why", err)
		}
	}
	return all
}

func (n *Node) unbrought() (dirs []string) {
	links, _ := filepath.Glob(filepath.Join(n.job.Dir, asideName("*"), away.LinkName))
	for _, link := range links {
		dir := filepath.Dir(filepath.Dir(link))
		if _, err := os.Stat(filepath.Join(dir, broughtName)); err != nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// sayUnbrought says at the end what nobody brings any more.
func (n *Node) sayUnbrought() {
	if n.Carry == nil {
		return
	}
	for _, dir := range n.unbrought() {
		n.Log.Warn("files of an earlier life of this node are not in their place: they wait until it is started again",
			"folder", dir)
	}
}

// broughtName marks a life's folder of which all is in the place.
var broughtName = filepath.Join("state", "brought")

func (n *Node) bringLife(ctx context.Context, dir string) (err error) {
	id, err := IdentityOf(dir)
	if err != nil || id == "" {
		return err
	}
	j := *n.job
	j.Dir = dir
	c, err := n.Carry(ctx, &j, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := j.Away.Over(n.disk); err != nil {
		return err
	}
	c.Start(ctx)
	if err := c.Finish(ctx); err != nil {
		return err
	}
	n.Log.Info("what an earlier life has left is in its place", "folder", dir, "place", c.URL())
	if err := os.WriteFile(filepath.Join(dir, broughtName), nil, 0o600); err != nil {
		return fmt.Errorf("note that: %w", err)
	}
	return nil
}

// forgetPlace removes what the registry has of a node's place, which is gone for good.
func forgetPlace(ctx context.Context, b bus.Bus, n strategy.Node) error {
	e, err := b.Get(ctx, node.PlaceKey(n))
	if err != nil || e.Value == nil {
		return err
	}
	return b.Delete(ctx, node.PlaceKey(n), e.Revision)
}
