// Package meshnodes runs one node of a mesh crawl, which has no central coordinator. It discovers other nodes and
// remembers URLs for them. Once the crawl is started, it applies the shared settings and crawls its own hosts.
package meshnodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/meshnode"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// Config configures a node of a mesh crawl.
type Config struct {
	Name    string   // a single word; need not be unique
	Address string   // of this node's API; may be empty
	Browser string   // program that renders pages; "" if the node has none
	Join    []string // addresses of nodes; empty: this is the first node, has known contacts, or will be found
	Backups int      // number of nodes that remember a host's URLs; the same on all nodes
	// Absent is how long to wait for failed nodes when fewer than Backups are left; 0: mesh.Config's default.
	Absent time.Duration
	Alone  time.Duration // until a node continues without its known contacts; default 15s
	// Check is the time until a node is first asked about dispatched URLs; 0: mesh.Config's default.
	Check time.Duration
	// ApplySettings applies the settings of the crawl's record to the job, or without any, those of this machine. If it
	// is set, the node waits until there are settings.
	ApplySettings func(j *job.Job, settings []settings.Setting) error
	// Connect opens the node whose key is in a folder, which it creates if necessary. It calls reached for connected
	// nodes, and lost for those whose connection broke.
	Connect     func(ctx context.Context, dir string, reached, lost func(strategy.Node)) (Connection, error)
	Open        session.Opener
	NewUploader session.NewUploader // nil: record files stay in the folder
	// ReadManifest reads the manifest of a node's storage location, by its URL; nil: lost nodes' pages are not fetched
	// again.
	ReadManifest func(ctx context.Context, place string) (*away.Manifest, error)
	PlaceWait    time.Duration // for the location of a lost node that cannot be read
	// LostAfter is the time until a missing node counts as lost with its disk; 0: mesh.Config's default.
	LostAfter time.Duration
	Terms     mesh.Terms
	WorkArea  int // blocks that the node works on, by the strategy mesh/paper; 0: computed
	Log       *slog.Logger

	// ShareCookies has the cookies of hosts move with them, to and from other nodes with ShareCookies.
	ShareCookies bool
}

// A Connection connects a node to others: a [p2p.Messenger].
type Connection interface {
	bus.Messenger
	Node() strategy.Node
	Self() p2p.Contact
	Contact(node strategy.Node) p2p.Contact
	Learn(c p2p.Contact)
	Known() []p2p.Contact
	Dial(ctx context.Context, addrs ...string) ([]strategy.Node, error)
	Addrs() []string
	Stats() p2p.Stats
}

var _ Connection = (*p2p.Messenger)(nil)

// A Node is a process that takes part in a crawl. It is used for one Run.
type Node struct {
	Config
	job       *job.Job
	disk      vfs.FS
	folder    *folder.Folder // nil once a session owns it
	conn      Connection
	router    meshnode.Router
	uploader  session.Uploader              // nil: record files stay in the folder
	mesh      atomic.Pointer[meshnode.Node] // nil before Run
	crawl     atomic.Pointer[session.Session]
	changed   chan struct{} // capacity 1: signals changes of the crawl's record
	leave     chan struct{} // capacity 1: signals Leave
	leaving   atomic.Bool
	finishing atomic.Bool  // see Uploading
	refetched atomic.Int64 // of the closed session

	rejected bool // the nodes to join rejected this one, and the user was warned; belongs to join
}

// Open opens a node's folder and starts to listen for connections. Run looks for other nodes. The caller closes the
// node.
func Open(ctx context.Context, j *job.Job, cfg Config) (_ *Node, err error) {
	switch {
	case j.Name == "":
		return nil, advice.Usage("a crawl of several nodes needs a name")
	case j.Dir == "":
		return nil, advice.Usage("a node needs a folder for its part of the crawl: name one")
	}
	own := *j
	cfg.Alone = cmp.Or(cfg.Alone, aloneAfter)
	n := &Node{Config: cfg, job: &own, disk: vfs.OS, changed: make(chan struct{}, 1), leave: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if n.folder, err = folder.Open(ctx, n.disk, j.Dir, folder.Options{Warn: n.warn}); err != nil {
		return nil, err
	}
	id, err := n.identity()
	if err != nil {
		return nil, err
	}
	conn, err := n.Connect(ctx, n.stateDir(), n.reached, n.lost)
	if err != nil {
		return nil, err
	}
	n.conn = conn
	if err := n.checkKey(id); err != nil {
		return nil, err
	}
	if n.NewUploader != nil {
		if n.uploader, err = n.NewUploader(ctx, n.job, string(conn.Node())); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// stateDir returns the folder of the node's key, contacts, and data on the crawl other than URLs.
func (n *Node) stateDir() string { return n.folder.Path("state", "mesh") }

func (n *Node) warn(err error) { n.Log.Warn(err.Error()) }

// identity returns the identity of the folder's node; zero if it has none yet.
func (n *Node) identity() (id node.Identity, err error) {
	if !n.folder.IsNodes() {
		if n.folder.HasJournal() {
			err = advice.Usage("%s has a crawl of a single machine, which cannot join another: name another folder",
				n.job.Dir)
		}
		return id, err
	}
	if id, err = node.OpenIdentity(n.disk, n.nodeFile(), n.Name); err == nil && !id.IsKey() {
		err = advice.Usage("%s belongs to a node with another strategy: name another folder", n.job.Dir)
	}
	return id, err
}

func (n *Node) nodeFile() string { return n.folder.Path("state", folder.NodeFile) }

// checkKey checks that the folder's node has the key of this one; a new folder gets its identity.
func (n *Node) checkKey(id node.Identity) error {
	self := n.conn.Node()
	switch {
	case id.Incarnation == "":
		id = node.Identity{Name: self.Name(), Incarnation: string(self)[len(self.Name())+1:]}
		return id.Save(n.disk, n.nodeFile())
	case id.Node() != self:
		return fmt.Errorf("the folder belongs to the node %s, whose key is missing: move it away, and start a new "+
			"node; the others have taken over its work", id.Node())
	}
	return nil
}

// Leave starts the transfer of all data to other nodes.
func (n *Node) Leave() {
	n.leaving.Store(true)
	wait.Wake(n.leave)
}

// Member reports whether the node has a confirmed place in the crawl or, while leaving, whether there is another node
// to take its data.
func (n *Node) Member() bool {
	m := n.mesh.Load()
	if m != nil && n.leaving.Load() {
		return !m.Alone()
	}
	return n.router.HasPlace()
}

// Uploading reports whether the node's part is over, and only the upload of its record files continues.
func (n *Node) Uploading() bool { return n.finishing.Load() }

// Session returns the node's part of the crawl; nil before it takes part.
func (n *Node) Session() *session.Session { return n.crawl.Load() }

// Addrs returns addresses of this node to show to users.
func (n *Node) Addrs() []string { return n.conn.Addrs() }

// Close closes all connections, and releases the folder.
func (n *Node) Close() (err error) {
	if n.uploader != nil {
		err = n.uploader.Close()
		n.uploader = nil
	}
	if n.conn != nil {
		err = errors.Join(err, n.conn.Close())
	}
	if c := n.crawl.Swap(nil); c != nil {
		n.refetched.Store(c.Engine.Dispatches.Refetched())
		err = errors.Join(err, c.Close())
	}
	if n.folder != nil {
		err = errors.Join(err, n.folder.Close())
		n.folder = nil
	}
	return err
}
