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

// Config says which cluster a process belongs to, and what it does for it.
type Config struct {
	Name  string // the name that a person gave the node; only for others to read
	Crawl string // one word; what belongs to the crawl has it in its subjects

	// Listen is the "host:port" of the server that runs in this process, if it runs one; others know it by this address,
	// and the next port is for other servers. It runs one if Listen is among Servers, or if Servers is empty.
	Listen string
	// Servers are the addresses of all nodes with servers, 1, 3 or 5 of them, fixed when the cluster is made. A node that
	// has it needs no Join.
	Servers []string
	Join    []string // addresses of any of the servers
	Secret  secret.Secret
	Dir     string // where the server keeps its part of registry and logs

	// NATS is the URL of a NATS with JetStream that is there already; several are separated by commas. No server is run
	// then, and what is above, but for Crawl and Name, means nothing.
	NATS     string
	Replicas int // 0: as many as Servers; with NATS: 1

	Timings Timings
	Log     func(string) // progress and trouble, for people; nil: nobody listens
}

// Timings are how long things may take. Zero values become the defaults named.
type Timings struct {
	Request   time.Duration // a write or read whose context has no earlier end; 5s
	Watch     time.Duration // how long a watcher may not know that it missed something; 1s
	Reconnect time.Duration // between two attempts to connect, up to as much again; 250ms
	Ping      time.Duration // how often a silent connection is tried; after two without an answer it is given up; 2s
}

func (t Timings) withDefaults() Timings {
	return Timings{
		Request:   cmp.Or(max(t.Request, 0), 5*time.Second),
		Watch:     cmp.Or(max(t.Watch, 0), time.Second),
		Reconnect: cmp.Or(max(t.Reconnect, 0), 250*time.Millisecond),
		Ping:      cmp.Or(max(t.Ping, 0), 2*time.Second),
	}
}

// A Cluster is a process's connection to the cluster, and the server it runs for it. Nodes that the process is, one
// after the other, Join it.
type Cluster struct {
	cfg     Config
	names   names
	server  *server.Server // nil: none runs here
	conn    *nats.Conn
	js      jetstream.JetStream
	updates updates
	closing sync.Once
	ctx     context.Context // ends with Close
	end     context.CancelFunc
}

// Open starts this process's server, if it runs one, connects, and waits until registry and logs can be written. While
// others are not there yet it waits for them until ctx ends; what no waiting will change is an error at once.
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
		return c.makeStreams(ctx)
	})
}

// openWith makes a cluster and closes it if f fails.
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

// Join makes the bus of a node. A process is one node at a time.
func (c *Cluster) Join(node strategy.Node) (*Bus, error) {
	if err := bus.CheckNode(node); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(c.ctx)
	return &Bus{cluster: c, node: node, ctx: ctx, end: end}, nil
}

// Close ends the connection and the server. What its buses do ends with bus.ErrClosed.
func (c *Cluster) Close() error {
	c.closing.Do(func() {
		c.end()
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

// Address is where this process's server listens; "" if it runs none.
func (c *Cluster) Address() string {
	if c.server == nil {
		return ""
	}
	return c.cfg.Listen
}

func (c *Cluster) log(format string, args ...any) {
	if c.cfg.Log != nil {
		c.cfg.Log(fmt.Sprintf(format, args...))
	}
}
