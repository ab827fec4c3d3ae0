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
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/crawl"
)

// Config configures a node of a cluster.
type Config struct {
	Name    string        // a single word, unique in the cluster
	Address string        // of this node's API; may be empty
	Browser string        // program that renders pages; "" if the node has none
	Timing  member.Timing // the same on all nodes
	Layout  string        // configuration that all nodes must agree on
	// Joining creates a node's member, and its strategy if that decides host by host.
	Joining   func(quorum.Config) (member.Member, strategy.Strategy)
	Serves    bool   // this process runs a server of the cluster
	ServerDir string // the server's folder, in the node's folder
	// ApplySettings applies the settings of the crawl's record to the job. If it is set, the node waits until there are
	// settings.
	ApplySettings func(j *job.Job, settings []settings.Setting) error
	Connect       func(context.Context) (Connection, error) // to the cluster; also starts this process's server
	// Limits determines the resources that this process may use; it may write to a folder. nil: the strategy does not
	// need them.
	Limits      func(dir string) *machine.Limits
	NewUploader session.NewUploader // nil: record files stay in the folder
	NewSender   session.NewSender   // nil: records are not sent to the crawl's sinks
	Ending      func()              // called before each session of the node is closed; may be nil
	// ReadManifest reads the manifest of a node's storage location, by its URL.
	ReadManifest func(ctx context.Context, place string) (*away.Manifest, error)
	// CopyState copies the newest uploaded checkpoint of a node's state into a folder; nil: there is none. DropState
	// deletes the uploaded checkpoints.
	CopyState func(ctx context.Context, place string, disk vfs.FS, dir string) (*away.State, error)
	DropState func(ctx context.Context, place string) error
	Turns     Turns           // nil: no other crawl visits the hosts
	Resources crawl.Resources // nil: the process has no other crawl
	PlaceWait time.Duration   // for the storage location of a dead node that cannot be read
	Open      session.Opener
	// CompleteFiles completes the record files in a folder of a node that was killed and cannot resume.
	CompleteFiles func(dir string) error
	Log           *slog.Logger
}

// Turns permits requests to hosts that other crawls of the cluster visit, too.
type Turns interface {
	crawl.Turns
	// Begin is called before the crawl's first request, End after the last. expired must cancel all requests under way.
	Begin(expired func())
	End()
	Frontiers() int // number of frontiers that may have hosts at the same addresses
}

// A Connection connects a node to its cluster and provides its bus.
type Connection interface {
	Join(strategy.Node) (bus.Bus, error)
	Address() string // of this process's server; "": it has none
	Health() error   // no connection, or this process's server lags behind the others
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
	finishing atomic.Bool    // see Uploading
	waiting   wait.Heartbeat // reads of the crawl's record by a node that waits for the start
	dead      takeovers
	expired   atomic.Int64 // leases not renewed in time
	declared  atomic.Int64 // times that the other nodes declared this one dead

	uploading sync.Mutex // held while files of earlier nodes are uploaded
}

// Open connects a process to its cluster. The caller closes the node.
func Open(ctx context.Context, j *job.Job, cfg Config) (*Node, error) {
	switch {
	case j.Name == "":
		return nil, advice.Usage("a crawl of several nodes needs a name")
	case j.Dir == "":
		return nil, advice.Usage("a node needs a folder for its part of the crawl: name one")
	}
	n := &Node{Config: cfg, job: j, disk: vfs.OS, home: findHome(j.Dir)}
	var err error
	if n.cluster, err = n.Connect(ctx); err != nil {
		if ctx.Err() == nil { // it is not part of this cluster
			err = errors.Join(err, n.home.clear())
		}
		return nil, err
	}
	return n, nil
}

// Run takes part in the crawl until it is done (nil), was stopped (node.ErrStopped), the node has left (node.ErrLeft),
// or ctx ends. If the node is declared dead, its files are moved aside and it restarts as another node. The report is
// that of its last membership; nil if it had none.
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
			if n.Ending != nil {
				n.Ending()
			}
			n.current.Store(nil)
			err = errors.Join(err, m.close())
		}
		if errors.Is(err, errSettings) {
			n.Log.Info("this node restarts with the new settings", "why", err)
			continue
		}
		if n.refused(ctx, err) {
			return nil, errors.Join(err, n.clear())
		}
		if !errors.Is(err, node.ErrLost) {
			return report, err
		}
		n.declared.Add(1)
		n.logRestart(err)
		if err := n.moveAside(ctx); err != nil {
			return report, err
		}
		bringing.Go(func() { n.uploadLost(lost) })
	}
	return report, context.Cause(ctx)
}

// Leave starts the transfer of all data to other nodes.
func (n *Node) Leave() {
	n.leaving.Store(true)
	if m := n.current.Load(); m != nil {
		m.node.Leave()
	}
}

// Member reports whether the node currently is a member: it holds a lease.
func (n *Node) Member() bool {
	m := n.current.Load()
	return m != nil && m.router.Until().After(time.Now())
}

// Session returns the node's current part of the crawl; nil before it takes part.
func (n *Node) Session() *session.Session {
	if m := n.current.Load(); m != nil {
		return m.crawl
	}
	return nil
}

// Close closes the connection, and the server.
func (n *Node) Close() error { return n.cluster.Close() }

// IdentityOf returns the identity of the node in a folder, "" if there is none.
func IdentityOf(dir string) (string, error) {
	file := filepath.Join(dir, "state", folder.NodeFile)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	id, err := node.OpenIdentity(vfs.OS, file, "")
	return string(id.Node()), err
}
