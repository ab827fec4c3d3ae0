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
	"kumo/internal/cluster/strategy"
)

// Config says what a node is among the others.
type Config struct {
	Name    string   // one word; that of another node may be the same
	Address string   // where this node can be asked; may be empty
	Join    []string // addresses of nodes; empty: this is the first one, or has met others before, or will be found
	Backups int      // nodes that remember the URLs of a host; the same on all nodes
	// Absent is how long nodes that do not answer are waited for where fewer than Backups are left; 0: as mesh.Config has
	// it
	Absent time.Duration
	Alone  time.Duration // after which a node goes on without those it has met; 15s
	// Check is after how long a node is asked first whether it has what was dispatched to it; 0: as mesh.Config has it
	Check time.Duration
	// ApplySettings makes the crawl's settings, as its record has them, the job's; without any it makes those of this machine. If
	// it is set, the node waits until there are some.
	ApplySettings func(j *job.Job, settings []settings.Setting) error
	// Connect opens the node with the key in a folder, which it makes. It is told of nodes that are connected, and of
	// those whose connection broke.
	Connect     func(ctx context.Context, dir string, reached, lost func(strategy.Node)) (Connection, error)
	Open        session.Opener
	NewUploader session.NewUploader // brings record files to a place; nil: they stay in the folder
	// ReadManifest reads what is in the place of a node's record files, by its URL; nil: lost nodes are not looked after
	ReadManifest func(ctx context.Context, place string) (*away.Manifest, error)
	PlaceWait    time.Duration // for the place of a lost node that cannot be read
	// LostAfter is after how long a node that is missed counts as lost with its disk; 0: as mesh.Config has it
	LostAfter time.Duration
	Log       *slog.Logger
}

// A Connection is a node's to others: a [p2p.Messenger].
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
	folder    *folder.Folder // nil once a session holds it
	conn      Connection
	router    meshnode.Router
	uploader  session.Uploader              // of its record files to a place; nil: they stay in the folder
	mesh      atomic.Pointer[meshnode.Node] // nil before Run
	crawl     atomic.Pointer[session.Session]
	changed   chan struct{} // has room for one word that the crawl's record has changed
	leave     chan struct{} // has room for one word that the node is to leave
	leaving   atomic.Bool
	finishing atomic.Bool  // see Bringing
	refetched atomic.Int64 // of the session that is closed

	rejected bool // the nodes to join do not take this one for one of theirs, and a person was told; join's
}

// Open takes a node's folder and connects it to others: it listens, and finds them once it runs. The caller closes the
// node.
func Open(ctx context.Context, j *job.Job, cfg Config) (_ *Node, err error) {
	switch {
	case j.Name == "":
		return nil, advice.Usage("a crawl of several nodes needs a name")
	case j.Dir == "":
		return nil, advice.Usage("a node keeps its part of the crawl in a folder: name one")
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

// stateDir is where the node keeps its key, what it knows of others, and of the crawl beside URLs.
func (n *Node) stateDir() string { return n.folder.Path("state", "mesh") }

func (n *Node) warn(err error) { n.Log.Warn(err.Error()) }

// identity is whose the folder is; a zero one if it is nobody's yet.
func (n *Node) identity() (id node.Identity, err error) {
	if !n.folder.IsNodes() {
		if n.folder.HasJournal() {
			err = advice.Usage("%s has a crawl of one node alone, which cannot become a part of another: name another folder",
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

// checkKey makes the folder the node's that has its key.
func (n *Node) checkKey(id node.Identity) error {
	self := n.conn.Node()
	switch {
	case id.Incarnation == "":
		id = node.Identity{Name: self.Name(), Incarnation: string(self)[len(self.Name())+1:]}
		return id.Save(n.disk, n.nodeFile())
	case id.Node() != self:
		return fmt.Errorf("the folder belongs to the node %s, whose key is gone: move it away, and start the node as a new "+
			"one; the others have what it had to do", id.Node())
	}
	return nil
}

// Leave asks the node to give all it has to others, and to leave.
func (n *Node) Leave() {
	n.leaving.Store(true)
	wait.Wake(n.leave)
}

// Member reports whether the node knows its place among the others, and that it has it still; of one that leaves,
// whether there is another one to whom it can give what it has.
func (n *Node) Member() bool {
	m := n.mesh.Load()
	if m != nil && n.leaving.Load() {
		return !m.Alone()
	}
	return n.router.HasPlace()
}

// Uploading reports whether the node's part is over, and the rest of its record files is on its way to their place.
func (n *Node) Uploading() bool { return n.finishing.Load() }

// Session is the crawl as this node has it; nil before it takes part.
func (n *Node) Session() *session.Session { return n.crawl.Load() }

// Addrs are addresses of this node to give to people.
func (n *Node) Addrs() []string { return n.conn.Addrs() }

// Close ends all connections, and lets the folder go.
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
