package p2p

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/autonat"
	"github.com/libp2p/go-libp2p/p2p/host/autorelay"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	tptu "github.com/libp2p/go-libp2p/p2p/net/upgrader"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/quic-go/quic-go"
)

// libp2p's own constructor (libp2p.New) links transports and a framework that kumo does not use: WebRTC, WebTransport
// and fx, a fifth of libp2p's compile time. This file assembles a host from the same parts.

// A hostBuilder builds a libp2p host: transports, limits, and NAT traversal.
type hostBuilder struct {
	cfg        *Config
	membership membership
	gater      *gater
	relays     autorelay.PeerSource
}

func (a hostBuilder) open(key crypto.PrivKey) (host.Host, error) {
	configureLibp2p()
	listen, err := listenAddrs(a.cfg.Listen)
	if err != nil {
		return nil, err
	}
	limits, err := a.cfg.Limits.resources()
	if err != nil {
		return nil, err
	}
	h, err := a.assemble(key, listen, limits)
	if err != nil {
		return nil, err // not a non-nil interface with a nil host
	}
	return h, nil
}

// A peerHost is a libp2p host with the parts that Close stops.
type peerHost struct {
	*basichost.BasicHost
	parts closers
}

// closers closes parts, the last first.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c closers) close() (err error) {
	for _, f := range slices.Backward(c) {
		err = errors.Join(err, f())
	}
	return err
}

// Close stops the host and all of its parts.
func (h *peerHost) Close() error { return errors.Join(h.parts.close(), h.BasicHost.Close()) }

// A wire is a swarm with its transports, which is not listening yet.
type wire struct {
	*swarm.Swarm
	bus      event.Bus
	upgrader transport.Upgrader
}

// blackHoles returns libp2p's default counters, by which the swarm detects that UDP or IPv6 does not work.
func blackHoles() []swarm.Option {
	return []swarm.Option{
		swarm.WithUDPBlackHoleSuccessCounter(&swarm.BlackHoleSuccessCounter{N: 100, MinSuccesses: 5, Name: "UDP"}),
		swarm.WithIPv6BlackHoleSuccessCounter(&swarm.BlackHoleSuccessCounter{N: 100, MinSuccesses: 5, Name: "IPv6"})}
}

// newWire creates a swarm with TCP and QUIC for the peer of a key. Parts that must be closed are added to parts.
func (a hostBuilder) newWire(key crypto.PrivKey, known peerstore.Peerstore, limits network.ResourceManager,
	parts *closers, options ...swarm.Option) (*wire, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(known.AddPrivKey(id, key), known.AddPubKey(id, key.GetPublic())); err != nil {
		return nil, err
	}
	conns, err := newQUICConns(key, limits)
	if err != nil {
		return nil, err
	}
	parts.add(conns.Close)
	w := &wire{bus: eventbus.NewBus()}
	options = append(options, swarm.WithConnectionGater(a.gater), swarm.WithResourceManager(limits))
	if w.Swarm, err = swarm.NewSwarm(id, known, w.bus, options...); err != nil {
		return nil, err
	}
	parts.add(w.Close)
	streams := *yamux.DefaultTransport
	streams.MaxStreamWindowSize = streamWindow
	muxers := []tptu.StreamMuxer{{ID: yamux.ID, Muxer: muxer{&streams}}}
	secure, err := a.membership.newSecurity(securityID, key, muxers)
	if err != nil {
		return nil, err
	}
	if w.upgrader, err = tptu.New([]sec.SecureTransport{secure}, muxers, nil, limits, a.gater); err != nil {
		return nil, err
	}
	overTCP, err := tcp.NewTCPTransport(w.upgrader, limits, nil)
	if err != nil {
		return nil, err
	}
	overQUIC, err := a.membership.newQUIC(key, conns, a.gater, limits)
	if err != nil {
		return nil, err
	}
	return w, errors.Join(w.AddTransport(overTCP), w.AddTransport(overQUIC))
}

// newQUICConns creates the sockets of QUIC. The resource manager checks each connection before it is accepted.
func newQUICConns(key crypto.PrivKey, limits network.ResourceManager) (*quicreuse.ConnManager, error) {
	raw, err := key.Raw()
	if err != nil {
		return nil, err
	}
	var reset quic.StatelessResetKey
	var token quic.TokenGeneratorKey
	for _, k := range []struct {
		to   []byte
		info string
	}{{reset[:], "kumo quic stateless reset key"}, {token[:], "kumo quic token generator key"}} {
		b, err := hkdf.Key(sha256.New, raw, nil, k.info, len(k.to))
		if err != nil {
			return nil, err
		}
		copy(k.to, b)
	}
	return quicreuse.NewConnManager(reset, token,
		quicreuse.ConnContext(func(ctx context.Context, client *quic.ClientInfo) (context.Context, error) {
			addr, err := quicreuse.ToQuicMultiaddr(client.RemoteAddr, quic.Version1)
			if err != nil {
				addr = nil // the resource manager decides
			}
			scope, err := limits.OpenConnection(network.DirInbound, false, addr)
			if err != nil {
				return ctx, err
			}
			ctx = network.WithConnManagementScope(ctx, scope)
			context.AfterFunc(ctx, scope.Done)
			return ctx, nil
		}),
		quicreuse.VerifySourceAddress(func(addr net.Addr) bool { return limits.VerifySourceAddress(addr) }))
}

func (a hostBuilder) assemble(key crypto.PrivKey, listen []ma.Multiaddr, limits network.ResourceManager) (_ *peerHost,
	err error) {
	h := &peerHost{}
	known, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, errors.Join(err, limits.Close())
	}
	defer func() {
		switch {
		case err == nil:
		case h.BasicHost != nil:
			err = errors.Join(err, h.Close())
		default:
			err = errors.Join(err, h.parts.close(), known.Close(), limits.Close())
		}
	}()
	w, err := a.newWire(key, known, limits, &h.parts, blackHoles()...)
	if err != nil {
		return nil, err
	}
	observed, err := observedaddrs.NewManager(w.bus, w.Swarm)
	if err != nil {
		return nil, err
	}
	routers := !a.cfg.Secret.IsZero() // on loopback there are no routers
	h.BasicHost, err = basichost.NewHost(w.Swarm, &basichost.HostOpts{
		EventBus:             w.bus,
		ConnManager:          connmgr.NullConnMgr{}, // attach limits the connections
		UserAgent:            "kumo",
		EnableHolePunching:   routers,
		EnableRelayService:   routers,
		RelayServiceOpts:     a.cfg.Limits.relayOptions(),
		ObservedAddrsManager: observed,
	})
	if err != nil {
		return nil, err
	}
	if routers {
		if err := circuit.AddTransport(h.BasicHost, w.upgrader); err != nil {
			return nil, err
		}
	}
	if err := w.Listen(listen...); err != nil {
		return nil, err
	}
	observed.Start(w.Swarm)
	h.parts.add(observed.Close)
	if routers {
		relays, err := autorelay.NewAutoRelay(h.BasicHost, autorelay.WithPeerSource(a.relays),
			autorelay.WithMinCandidates(1), autorelay.WithBootDelay(0), autorelay.WithMinInterval(5*time.Second),
			autorelay.WithBackoff(time.Minute))
		if err != nil {
			return nil, err
		}
		relays.Start()
		h.parts.add(relays.Close)
	}
	h.Start()
	return h, a.addAutoNAT(h, limits, routers)
}

// addAutoNAT has other members test whether the host is reachable, and the host tests other members.
func (a hostBuilder) addAutoNAT(h *peerHost, limits network.ResourceManager, serve bool) error {
	options := []autonat.Option{autonat.UsingAddresses(func() []ma.Multiaddr {
		return slices.DeleteFunc(h.AllAddrs(), func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) })
	})}
	if serve {
		key, _, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			return err
		}
		known, err := pstoremem.NewPeerstore()
		if err != nil {
			return err
		}
		h.parts.add(known.Close)
		dialer, err := a.newWire(key, known, limits, &h.parts, swarm.WithDialRanker(swarm.NoDelayDialRanker),
			swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
		if err != nil {
			return err
		}
		options = append(options, autonat.EnableService(dialer.Swarm))
		switch a.cfg.Reach {
		case ReachPublic:
			options = append(options, autonat.WithReachability(network.ReachabilityPublic))
		case ReachPrivate:
			options = append(options, autonat.WithReachability(network.ReachabilityPrivate))
		}
	}
	nat, err := autonat.New(h, options...)
	if err == nil {
		h.SetAutoNat(nat)
	}
	return err
}
