// Package natsbus implements the bus over NATS, with embedded servers or an existing NATS deployment.
//
// Embedded servers run in one, three or five of the nodes.
//
// Messages are plain NATS messages on a subject of their receiver. The registry is a JetStream stream that stores the
// last message of each subject. The logs are another stream, which stores all messages. Each write names the last
// message that it expects on its subject. It is acknowledged once a majority of the servers has it on disk.
//
// The package uses no other JetStream features, in particular no consumers. A reader requests the messages after a
// sequence number from any server. So servers store no state of readers, and a reader does not depend on one server. A
// read that must see the latest state first writes a marker through the majority. Then it accepts only the answer of a
// server that has the marker.
//
// # Addresses
//
// A server listens on two ports: Config.Listen for nodes, and the next port for the other servers. Both use TLS 1.3,
// with certificates on both sides that are derived from the cluster's secret. Without a secret only loopback addresses
// are accepted.
package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// Config configures a process's part in a cluster.
type Config struct {
	Name  string // the node's name that a user chose; informational
	Crawl string // one word; part of the crawl's subjects and streams

	// Listen is the "host:port" of the server that runs in this process, if it runs one. Other nodes use this address,
	// and other servers the next port. The process runs a server if Listen is among Servers, or if Servers and Join are
	// empty.
	Listen string
	// Servers are the addresses of all nodes with servers: 1, 3 or 5 of them, fixed when the cluster is created. A node
	// that has them needs no Join.
	Servers []string
	Join    []string // addresses of any of the servers
	Secret  secret.Secret
	Dir     string // directory of the server's part of registry and logs

	// Shared means that the servers serve any number of crawls, which clients reach with Sub. Crawl is ignored.
	Shared bool

	// NATS is the URL of an existing NATS server with JetStream, or several URLs separated by commas. Then no server is
	// started, and of the fields above only Crawl and Name are used.
	NATS     string
	Replicas int // copies of the data; 0: as many as Servers, with NATS: 1

	Timings Timings
	Log     func(string) // logs progress and errors; may be nil
}

// Timings are intervals and timeouts. Zero values become the defaults named.
type Timings struct {
	Request   time.Duration // timeout of a write or read whose context does not end earlier; 5s
	Watch     time.Duration // until a watcher notices that it has missed something; 1s
	Reconnect time.Duration // minimum between two attempts to connect, up to twice as long; 250ms
	Ping      time.Duration // interval of pings on a silent connection; two unanswered ones end it; 2s
}

func (t Timings) withDefaults() Timings {
	return Timings{
		Request:   cmp.Or(max(t.Request, 0), 5*time.Second),
		Watch:     cmp.Or(max(t.Watch, 0), time.Second),
		Reconnect: cmp.Or(max(t.Reconnect, 0), 250*time.Millisecond),
		Ping:      cmp.Or(max(t.Ping, 0), 2*time.Second),
	}
}

// A Cluster is a process's connection to the cluster, and the server that the process runs. The identities that a
// process has one after the other each Join it.
type Cluster struct {
	cfg     Config
	names   names
	server  *server.Server // nil if this process runs none
	conn    *nats.Conn
	js      jetstream.JetStream
	updates updates
	parent  *Cluster      // of a Sub, which uses the parent's server and connection
	adopts  bool          // a client: it accepts servers that are shared
	maxAge  time.Duration // see SubConfig
	creates bool          // creates missing streams
	closing sync.Once
	ctx     context.Context // canceled by Close
	end     context.CancelFunc
}

// Open starts this process's server, if it runs one, connects, and waits until registry and logs can be written. It
// waits for other nodes until ctx ends, but returns permanent errors at once.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	return openWith(cfg, func(c *Cluster) error {
		if c.cfg.runsServer() {
			var err error
			if c.server, err = startServer(ctx, c.cfg); err != nil {
				return err
			}
		}
		if err := c.connect(ctx); err != nil {
			return err
		}
		c.creates = c.server != nil || c.cfg.NATS != ""
		return c.makeStreams(ctx)
	})
}

// openWith creates a cluster and closes it if f fails.
func openWith(cfg Config, f func(*Cluster) error) (*Cluster, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, names: names{cfg.Crawl}}
	c.ctx, c.end = context.WithCancel(context.Background())
	if err := f(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Join returns the bus of a node. A process is one node at a time.
func (c *Cluster) Join(node strategy.Node) (*Bus, error) {
	if err := bus.CheckNode(node); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(c.ctx)
	return &Bus{cluster: c, node: node, ctx: ctx, end: end}, nil
}

// Close ends the connection and the server. Pending calls of its buses return bus.ErrClosed.
func (c *Cluster) Close() error {
	c.closing.Do(func() {
		c.end()
		if c.parent != nil {
			return
		}
		if c.conn != nil {
			c.conn.Close()
		}
		if c.server != nil {
			c.server.Shutdown()
			c.server.WaitForShutdown()
		}
	})
	return nil
}

// Address returns the address on which this process's server listens; "" if it runs none, and for a Sub.
func (c *Cluster) Address() string {
	if c.server == nil || c.parent != nil {
		return ""
	}
	return c.cfg.Listen
}

func (c *Cluster) log(format string, args ...any) {
	if c.cfg.Log != nil {
		c.cfg.Log(fmt.Sprintf(format, args...))
	}
}
