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

// Config configures a node's Messenger.
type Config struct {
	Name  string // the node's name that a user chose: one word, at most 64 letters
	Crawl string // one word; nodes of other crawls are refused, even with the same secret
	// Secret is the cluster's. Without one, only loopback addresses are used.
	Secret secret.Secret
	// Dir is the folder of the node's key and of other nodes' addresses. Without one, the node gets a new identity each
	// time and saves nothing.
	Dir string

	// Listen are the addresses to listen on: "host:port" for both TCP and QUIC (UDP), or multiaddrs. An empty host is
	// every address of the machine, port 0 any free port.
	Listen []string
	Reach  Reach // whether others can dial this node, if known
	LAN    bool  // find nodes in the local network, and be found by them (mDNS)

	Limits Limits

	// Reached reports a node that was connected. Lost reports a node whose connection broke, or that could not be
	// connected to send a message, but not if the connection was closed as unused. They are called one at a time, in
	// order for each node, and must not block. Both may be nil.
	Reached, Lost func(strategy.Node)
	Log           func(string) // logs progress and errors; may be nil
}

// Guest is the name of a client that is not a node. Nodes do not store its addresses.
const Guest = "guest"

// A Reach is whether other nodes can connect to a node.
type Reach int

// The zero value has the node find out with the help of others, which takes some minutes.
const (
	ReachUnknown Reach = iota
	ReachPublic        // others can connect: the node relays for those that cannot be reached
	ReachPrivate       // others cannot: the node looks for relays at once
)

// Limits bound what other nodes can make a node use. Zero values become the defaults named.
type Limits struct {
	Peers    int   // nodes connected at once; 1,024
	Contacts int   // nodes whose addresses are stored; 4,096
	Messages int   // messages read per second from one node; 20,000
	Bytes    int   // bytes of these per second; 32 MiB
	Queue    int   // bytes queued for one node, beyond which the oldest are dropped; 8 MiB
	Queued   int64 // bytes queued for all nodes, beyond 64 KiB for each; 64 MiB
	Large    int64 // bytes of messages beyond 64 KiB being read at once; 64 MiB
	Memory   int64 // bytes of connections' buffers; 256 MiB
	Relayed  int64 // bytes each way of a relayed connection, after which it ends; 256 MiB
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

// A Messenger exchanges messages with the other nodes of the crawl.
type Messenger struct {
	cfg        Config
	node       strategy.Node
	id         peer.ID
	membership membership
	host       host.Host
	notified   network.Notifiee
	gater      *gater
	counts     counts

	work    taskGroup // runs until Close
	closing sync.Once
	inbox   chan delivery
	notices *notices
	book    *book
	dials   chan struct{}       // a slot for each dial in progress
	shared  atomic.Int64        // free bytes that all queues share
	large   *semaphore.Weighted // bytes of large messages

	mu           sync.Mutex // guards the fields below
	peers        map[strategy.Node]*remote
	pendingDials map[*pendingDial]bool
}

var _ bus.Messenger = (*Messenger)(nil)

// Open loads or creates the node's key in cfg.Dir, and listens. It dials no node: Dial and Send do, and Known returns
// candidates.
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

// Node returns this node's identity.
func (m *Messenger) Node() strategy.Node { return m.node }

// Close interrupts blocked calls, and closes all connections.
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

// refused counts a peer that is not a member, or is refused. It logs at most once a minute, so that strangers cannot
// fill the log.
func (m *Messenger) refused(err error) {
	n := m.counts.refused.Add(1)
	now := time.Now().UnixNano()
	last := m.counts.refusal.Load()
	if errors.Is(err, ErrNotMember) && now-last > int64(time.Minute) && m.counts.refusal.CompareAndSwap(last, now) {
		m.log("refused a peer (%d so far): %v", n, err)
	}
}
