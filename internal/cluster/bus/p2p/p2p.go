// Package p2p implements messages between nodes over direct connections, without servers.
//
// Nodes can be on the open network, in one local network, or behind home routers. A node needs the address of one other
// node. Connections use TCP (Noise) or QUIC by go-libp2p.
//
// # Authentication
//
// A node has an Ed25519 key in its folder. Its identity is the name that a user chose, "~", and the public key in 52
// letters. Encryption proves the key, so no node can impersonate another.
//
// A peer proves by the crawl's secret that it belongs to the crawl. It does so before libp2p gets the connection, so a
// peer without the secret cannot open a stream of any protocol. The package does not protect the crawl from a member
// that lies. It bounds the resources that a member can use ([Limits]).
//
// # Connections
//
// Two nodes share one connection, which the first message opens. It carries one stream (link) with messages in both
// directions. Each message is preceded by its length, and messages that are ready together share a write.
//
// A message is lost if its receiver cannot be reached, if the receiver reads more slowly than others send, or if the
// connection breaks while the message is in transit. No message is delivered twice. When there are too many
// connections, those that have not been used lately are closed.
//
// # Routers
//
// Nodes find out from each other whether they can be reached from outside (AutoNAT). An unreachable node has two
// members that can relay for it; its addresses then name these relays. The ends of a relayed connection try to open a
// direct one through their routers (DCUtR), and use that from then on. Members relay for members only, up to a limit.
package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/semaphore"

	"kumo/internal/base/secret"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// Config says what a node is, and what it may use.
type Config struct {
	Name  string // that a person gave the node: one word, 64 letters at most
	Crawl string // one word; nodes of other crawls are strangers, though they have the same secret
	// Secret is the cluster's. Without one only loopback addresses are listened on and dialled.
	Secret secret.Secret
	// Dir is where the node keeps its key, and addresses of other nodes. Without one it is another node each time, and
	// keeps nothing.
	Dir string

	// Listen are addresses to listen on: "host:port" for both TCP and QUIC (UDP), or multiaddrs. An empty host is every
	// address of the machine, port 0 any that is free.
	Listen []string
	Reach  Reach // whether others can dial this node, if that is known
	LAN    bool  // find nodes in the local network, and be found there (mDNS)

	Limits Limits

	// Reached and Lost report nodes whose connection was made, or broke or could not be made for a message; not one that
	// was closed as unused. Calls come one at a time, the latest of a node last, and must not block. Both may be nil.
	Reached, Lost func(strategy.Node)
	Log           func(string) // progress and trouble, for people; may be nil
}

// Guest is the name of who speaks to nodes and is none: nobody keeps its addresses.
const Guest = "guest"

// A Reach says whether other nodes can begin a connection to a node.
type Reach int

// The zero value asks other nodes, which takes some minutes.
const (
	ReachUnknown Reach = iota
	ReachPublic        // others can: it relays for those that cannot be reached
	ReachPrivate       // they cannot: it looks for relays at once
)

// Limits are how much others can make a node use. Zero values become the defaults named.
type Limits struct {
	Peers    int   // nodes that are connected at once; 1,024
	Contacts int   // nodes whose addresses are kept; 4,096
	Messages int   // that are read a second from one node, which waits beyond; 20,000
	Bytes    int   // as many of their bytes; 32 MiB
	Queue    int   // bytes that wait for one node, the oldest dropped beyond; 8 MiB
	Queued   int64 // bytes that wait for all nodes, beyond 64 KiB for each; 64 MiB
	Large    int64 // bytes of messages beyond 64 KiB that are being read at once; 64 MiB
	Memory   int64 // bytes of buffers of connections; 256 MiB
	Relayed  int64 // bytes each way of a connection that this node relays, which then ends; 256 MiB
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Peers:    cmp.Or(l.Peers, 1024),
		Contacts: cmp.Or(l.Contacts, 4096),
		Messages: cmp.Or(l.Messages, 20_000),
		Bytes:    cmp.Or(l.Bytes, 32<<20),
		Queue:    max(cmp.Or(l.Queue, 8<<20), bus.MaxData+maxHead),
		Queued:   max(cmp.Or(l.Queued, 64<<20), bus.MaxData+maxHead),
		Large:    max(cmp.Or(l.Large, 64<<20), bus.MaxData+maxHead),
		Memory:   cmp.Or(l.Memory, 256<<20),
		Relayed:  cmp.Or(l.Relayed, 256<<20),
	}
}

// A Messenger is a node's words to the others.
type Messenger struct {
	cfg        Config
	node       strategy.Node
	id         peer.ID
	membership membership
	host       host.Host
	notified   network.Notifiee
	gater      *gater
	counts     counts

	work    taskGroup // until Close
	closing sync.Once
	inbox   chan delivery
	notices *notices
	book    *book
	dials   chan struct{}       // a slot for each that is under way
	shared  atomic.Int64        // bytes left to all queues
	large   *semaphore.Weighted // bytes

	mu           sync.Mutex // guards what follows
	peers        map[strategy.Node]*remote
	pendingDials map[*pendingDial]bool
}

var _ bus.Messenger = (*Messenger)(nil)

// Open makes the node with the key in cfg.Dir, and listens. Nobody is dialled before Dial or Send; Known says who could
// be.
func Open(cfg Config) (_ *Messenger, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	key, err := loadKey(cfg.Dir)
	if err != nil {
		return nil, err
	}
	m := &Messenger{cfg: cfg, inbox: make(chan delivery), dials: make(chan struct{}, maxDials),
		large: semaphore.NewWeighted(cfg.Limits.Large), peers: map[strategy.Node]*remote{},
		pendingDials: map[*pendingDial]bool{}, notices: newNotices(),
		gater: newGater(cfg.Secret.IsZero())}
	m.work.ctx, m.work.cancel = context.WithCancel(context.Background())
	m.shared.Store(cfg.Limits.Queued)
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.id, err = peer.IDFromPrivateKey(key); err != nil {
		return nil, err
	}
	if m.node, err = nodeOf(cfg.Name, m.id); err != nil {
		return nil, err
	}
	if m.membership, err = newMembership(cfg.Secret, cfg.Crawl); err != nil {
		return nil, err
	}
	m.membership.refuse = m.refused
	if m.book, err = openBook(cfg.Dir, cfg.Limits.Contacts); err != nil {
		return nil, err
	}
	a := hostBuilder{&m.cfg, m.membership, m.gater, m.relays}
	if m.host, err = a.open(key); err != nil {
		return nil, fmt.Errorf("listen on %v: %w", cfg.Listen, err)
	}
	m.host.SetStreamHandler(linkProtocol, m.accepted)
	m.notified = m.notifiee()
	m.host.Network().Notify(m.notified)
	m.work.Go(func() { m.notices.run(m.work.ctx, cfg.Reached, cfg.Lost) })
	m.work.Go(m.saveRegularly)
	return m, m.openLAN()
}

// Node is who this node is.
func (m *Messenger) Node() strategy.Node { return m.node }

// Close ends what waits, and all connections.
func (m *Messenger) Close() error {
	var err error
	m.closing.Do(func() {
		if m.host != nil {
			err = m.saveBook()
		}
		m.work.stop()
		if m.host != nil {
			err = errors.Join(err, m.host.Close())
		}
		m.work.work.Wait()
	})
	return err
}

func (m *Messenger) log(format string, args ...any) {
	if m.cfg.Log != nil {
		m.cfg.Log(fmt.Sprintf(format, args...))
	}
}

// refused counts a peer that is no member, or is not let in. Who reads the log is told now and then: strangers shall
// not be able to fill it.
func (m *Messenger) refused(err error) {
	n := m.counts.refused.Add(1)
	now := time.Now().UnixNano()
	last := m.counts.refusal.Load()
	if errors.Is(err, ErrNotMember) && now-last > int64(time.Minute) && m.counts.refusal.CompareAndSwap(last, now) {
		m.log("a peer was refused, the %d. so far: %v", n, err)
	}
}
