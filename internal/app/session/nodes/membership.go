package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/base/advice"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/stream"
)

// A membership is a node for as long as it has its place: its identity, its part of the crawl, and its connections.
type membership struct {
	n       *Node
	id      node.Identity
	bus     *meter
	job     *job.Job
	folder  *folder.Folder
	crawl   *session.Session // nil until it is open; then it owns the folder
	upload  memberUpload
	sinks   memberSinks
	journal *stream.Journal
	router  *node.Router
	node    *node.Node
	engine  *engine
	counter *counter
	share   *pageShare
	waiter  waiter
	gauge   gauge
	release func() // ends the renewal of the lease while the node does not run

	dropped   bool                // the log was deleted
	wasMember bool                // an earlier process was a member, or about to be one
	joined    atomic.Bool         // this process is a member, or about to be one
	moved     atomic.Int64        // hosts received from other nodes
	settings  map[string][]string // the settings of the crawl's record in effect
	pageRate  node.Rate
	byteRate  node.Rate
}

// open creates the node that the folder belongs to, or a new one. It returns node.ErrLost if other nodes have taken
// over its data.
func (n *Node) open(ctx context.Context) (_ *membership, err error) {
	j := *n.job
	m := &membership{n: n, job: &j, router: node.NewRouter(), engine: new(engine), release: func() {}}
	m.counter = &counter{m: m, place: -1, divider: newPageDivider(), kick: make(chan struct{}, 1)}
	m.share, m.waiter, m.sinks.m = &pageShare{m: m}, waiter{m: m}, m
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if err := m.openFolder(ctx); err != nil {
		return nil, err
	}
	joined, err := n.cluster.Join(m.id.Node())
	if err != nil {
		return nil, err
	}
	m.bus = &meter{Bus: joined}
	m.release = m.holdLease(ctx)
	if err := m.openUploader(ctx); err != nil {
		return nil, err
	}
	if err := m.awaitSettings(ctx); err != nil {
		return nil, err
	}
	for err = m.checkMember(ctx); errors.Is(err, bus.ErrUnavailable); err = m.checkMember(ctx) {
		if err := wait.For(ctx, statePollInterval); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	m.release()
	m.release = m.holdLease(ctx)                        // again: the waits before may have used up its limit
	if err := os.RemoveAll(m.failedDir()); err != nil { // left by a process that died during a recovery
		return nil, err
	}
	return m, m.openCrawl(ctx)
}

// openFolder locks the folder, and reads its identity.
func (m *membership) openFolder(ctx context.Context) (err error) {
	n := m.n
	if m.folder, err = folder.Open(ctx, n.disk, m.job.Dir, folder.Options{Warn: n.warn}); err != nil {
		return err
	}
	if m.folder.HasJournal() && !m.folder.IsNodes() {
		return advice.Usage("%s has a crawl of a single machine, which cannot join another: name another folder",
			m.job.Dir)
	}
	// A node that was killed before it became a member has a journal, too, and is resumed.
	if m.id, err = node.OpenIdentity(n.disk, m.folder.Path("state", folder.NodeFile), n.Name); err != nil {
		return err
	}
	if m.id.IsKey() {
		return advice.Usage("%s belongs to a node with the strategy mesh: name another folder", m.job.Dir)
	}
	if m.wasMember = m.id.Joined; m.wasMember {
		m.joined.Store(true)
		n.home.keep.Store(true)
	}
	return nil
}

func (n *Node) warn(err error) { n.Log.Warn(err.Error()) }

// checkMember returns node.ErrLost if the node was a member and no longer is.
func (m *membership) checkMember(ctx context.Context) error {
	if !m.joined.Load() {
		return nil
	}
	t, err := node.Control{Registry: m.bus}.Table(ctx)
	if err != nil {
		return err
	}
	self := m.id.Node()
	if slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == self }) ||
		slices.Contains(t.Leaving, self) {
		return nil
	}
	return fmt.Errorf("%w: it is not in the cluster's table", node.ErrLost)
}

// failedDir returns the folder for the recovered states of dead nodes.
func (m *membership) failedDir() string { return m.folder.Path("state", "estates") }

func (m *membership) openCrawl(ctx context.Context) (err error) {
	m.job.Crawl.KeepOpen = true
	if err := m.sinks.open(); err != nil {
		return err
	}
	m.crawl, err = m.n.Open(m.folder, m.job, &session.ClusterHooks{Join: m.join, Server: m.n.Serves,
		Ship: func(local journal.Journal) (journal.Journal, error) { return m.ship(ctx, local) }})
	if err != nil {
		m.folder = nil // it was closed
		return err
	}
	e := m.crawl.Engine
	*m.engine = engine{e, e.Links, e.Seeding, e.Inspector, e.Transfers(), m.sinks.sender, m.n.Turns}
	m.openGauge()
	if err := m.publishPlace(ctx); err != nil {
		return err
	}
	m.startUpload(ctx)
	return m.sinks.start(ctx)
}

func (m *membership) close() error {
	var err error
	m.upload.end()
	m.sinks.stop()
	if m.upload.uploader != nil {
		err = m.upload.uploader.Close()
	}
	switch {
	case m.crawl != nil:
		err = errors.Join(err, m.crawl.Close())
	case m.folder != nil:
		err = errors.Join(err, m.folder.Close())
	}
	m.release()
	if m.bus != nil {
		m.waiter.withdraw(context.Background())
		m.dropLease()
		err = errors.Join(err, m.bus.Close())
	}
	return err
}

// dropLease deletes the lease of a node that did not become a member. Otherwise the node would be listed until the
// lease ends.
func (m *membership) dropLease() {
	if m.joined.Load() || m.id.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
	defer cancel()
	key := quorum.LeasePrefix + string(m.id.Node())
	e, err := m.bus.Get(ctx, key)
	if err == nil && e.Value != nil {
		err = m.bus.Delete(ctx, key, e.Revision)
	}
	if err != nil {
		m.n.Log.Debug("cannot delete a lease", "key", key, "err", err)
	}
}
