// Package nodes runs one node of a clustered crawl. It joins the crawl, applies the settings and the limit that all
// nodes share, and takes over the data of failed nodes. If the others declare this node dead, it restarts as a new
// node.
package nodes

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/base/machine"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// Config says what a node is in its cluster.
type Config struct {
	Name    string        // one word, unlike those of the other nodes
	Address string        // where this node can be asked; may be empty
	Timing  member.Timing // the same on all nodes
	Layout  string        // what all nodes must agree on
	// Joining makes a node's member, and the strategy if that decides host by host.
	Joining   func(quorum.Config) (member.Member, strategy.Strategy)
	Serves    bool   // this process is to run a server of the cluster
	ServerDir string // where it has what it keeps, in the node's folder
	// ApplySettings makes the crawl's settings, as its record has them, the job's. If it is set, the node waits until there are
	// some.
	ApplySettings func(j *job.Job, settings []settings.Setting) error
	Connect       func(context.Context) (Connection, error) // to the cluster; what this process serves for it is begun with it
	// Limits finds what this process may use of its machine, and writes to a folder; nil: the strategy does not ask.
	Limits      func(dir string) *machine.Limits
	NewUploader session.NewUploader // brings record files to a place; nil: they stay in the folder
	// ReadManifest reads what is in the place of a node's record files, by its URL.
	ReadManifest func(ctx context.Context, place string) (*away.Manifest, error)
	// CopyState copies the newest checkpoint of a node's state in its place into a folder; nil: there is none. DropState
	// removes what is there of them.
	CopyState func(ctx context.Context, place string, disk vfs.FS, dir string) (*away.State, error)
	DropState func(ctx context.Context, place string) error
	PlaceWait time.Duration // for the place of a dead node that cannot be read
	Open      session.Opener
	Log       *slog.Logger
}

// A Connection to a cluster gives a node its bus.
type Connection interface {
	Join(strategy.Node) (bus.Bus, error)
	Address() string // of the server that runs in this process; "": none does
	Close() error
}

// A Node is a process that takes part in a crawl, as one node after the other if it loses its place.
type Node struct {
	Config
	job       *job.Job
	disk      vfs.FS
	cluster   Connection
	current   atomic.Pointer[membership]
	leaving   atomic.Bool
	home      *nodeFolder
	finishing atomic.Bool // see Bringing
	dead      takeovers

	uploading sync.Mutex // held by who brings what earlier lives have left to their places
}

// Open connects a process to its cluster. The caller closes the node.
func Open(ctx context.Context, j *job.Job, cfg Config) (*Node, error) {
	switch {
	case j.Name == "":
		return nil, advice.Usage("a crawl of several nodes needs a name")
	case j.Dir == "":
		return nil, advice.Usage("a node keeps its part of the crawl in a folder: name one")
	}
	n := &Node{Config: cfg, job: j, disk: vfs.OS, home: findHome(j.Dir)}
	var err error
	if n.cluster, err = n.Connect(ctx); err != nil {
		if ctx.Err() == nil { // it does not belong here
			err = errors.Join(err, n.home.clear())
		}
		return nil, err
	}
	return n, nil
}

// Run takes part in the crawl until it is done (nil), was stopped (node.ErrStopped), the node has left (node.ErrLeft),
// or ctx ends. If the node is given up for dead, it begins again as another one; what it had is put aside. The report
// is that of its last membership; nil if it had none.
func (n *Node) Run(ctx context.Context) (*stats.Report, error) {
	var report *stats.Report
	lost, enough := context.WithCancel(ctx)
	var bringing sync.WaitGroup
	defer n.warnPending()
	defer bringing.Wait()
	defer enough()
	bringing.Go(func() { n.uploadLost(lost) })
	for ctx.Err() == nil {
		m, err := n.open(ctx)
		if err == nil {
			n.current.Store(m)
			if n.leaving.Load() {
				m.node.Leave()
			}
			report, err = m.run(ctx)
			err = m.finishUpload(ctx, err)
			n.current.Store(nil)
			err = errors.Join(err, m.close())
		}
		if errors.Is(err, errSettings) {
			n.Log.Info("this node begins with the settings of the start", "why", err)
			continue
		}
		if n.refused(ctx, err) {
			return nil, errors.Join(err, n.clear())
		}
		if !errors.Is(err, node.ErrLost) {
			return report, err
		}
		n.Log.Warn("this node begins again as another one", "why", err)
		if err := n.moveAside(ctx); err != nil {
			return report, err
		}
		bringing.Go(func() { n.uploadLost(lost) })
	}
	return report, context.Cause(ctx)
}

// Leave asks the node to hand over all it has, and to leave.
func (n *Node) Leave() {
	n.leaving.Store(true)
	if m := n.current.Load(); m != nil {
		m.node.Leave()
	}
}

// Member reports whether the node is a member of the crawl at present: it holds a lease.
func (n *Node) Member() bool {
	m := n.current.Load()
	return m != nil && m.router.Until().After(time.Now())
}

// Session is the crawl as this node has it at present; nil before it takes part.
func (n *Node) Session() *session.Session {
	if m := n.current.Load(); m != nil {
		return m.crawl
	}
	return nil
}

// Close ends the connection, and the server.
func (n *Node) Close() error { return n.cluster.Close() }

// IdentityOf is the identity of the node whose folder this is, "" if it is none's.
func IdentityOf(dir string) (string, error) {
	file := filepath.Join(dir, "state", folder.NodeFile)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	id, err := node.OpenIdentity(vfs.OS, file, "")
	return string(id.Node()), err
}
