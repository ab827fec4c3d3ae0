package p2p

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/libp2p/go-libp2p/p2p/host/observedaddrs"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	streamWindow = 1 << 20 // bytes that a peer may send on a stream before they are read

	maxRelayed  = 128 // nodes for which this one relays
	maxCircuits = 16  // relayed connections of one node
	relayedFor  = time.Hour
)

// configureLibp2p sets libp2p's package variables for a network of trusted members.
var configureLibp2p = sync.OnceFunc(func() {
	gologshim.SetDefaultHandler(slog.DiscardHandler) // important events are returned as errors or counted
	// Other nodes see the address by which a router shows this node. libp2p trusts an address after four observations.
	// Members are trusted after one, as small clusters do not have four.
	observedaddrs.ActivationThresh = 1
})

func (l Limits) relayOptions() []relay.Option {
	return []relay.Option{relay.WithResources(relay.Resources{
		Limit:                 &relay.RelayLimit{Duration: relayedFor, Data: l.Relayed},
		ReservationTTL:        time.Hour,
		MaxReservations:       maxRelayed,
		MaxCircuits:           maxCircuits,
		BufferSize:            4096,
		MaxReservationsPerIP:  maxCircuits,
		MaxReservationsPerASN: maxRelayed,
	}), relay.WithReservationAddressFilter(isRelayable)}
}

// isRelayable reports whether a relay may give an address to others as its own. A relay knows that it can be reached,
// so the address may be of any network.
func isRelayable(a ma.Multiaddr) bool { return !manet.IsIPLoopback(a) && !isRelayed(a) }

// resources returns libp2p's limits. They are not exact for concurrent connections; attach checks the number of nodes
// again.
func (l Limits) resources() (network.ResourceManager, error) {
	files := rcmgr.LimitVal(2*l.Peers + 256)
	memory := rcmgr.LimitVal64(l.Memory)
	streams := 8 * files
	all := rcmgr.ResourceLimits{Streams: streams, StreamsInbound: streams, StreamsOutbound: streams,
		Conns: files, ConnsInbound: files, ConnsOutbound: files, FD: files, Memory: memory}
	transient := rcmgr.ResourceLimits{Streams: 512, StreamsInbound: 512, StreamsOutbound: 512,
		Conns: 256, ConnsInbound: 128, ConnsOutbound: 128, FD: 256, Memory: memory / 4}
	one := rcmgr.ResourceLimits{Streams: 128, StreamsInbound: 64, StreamsOutbound: 64,
		Conns: 8, ConnsInbound: 4, ConnsOutbound: 8, FD: 8, Memory: memory / 4}
	few := rcmgr.ResourceLimits{Streams: 8, StreamsInbound: 4, StreamsOutbound: 8,
		Conns: 8, ConnsInbound: 8, ConnsOutbound: 8, FD: 8, Memory: memory / 4}
	partial := rcmgr.PartialLimitConfig{
		System: all, Transient: transient, AllowlistedSystem: all, AllowlistedTransient: transient,
		ServiceDefault: all, ServicePeerDefault: one, ProtocolDefault: all, ProtocolPeerDefault: one,
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{linkProtocol: few, identify.ID: few, identify.IDPush: few},
		PeerDefault:  one, Conn: one, Stream: few,
	}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(partial.Build(rcmgr.DefaultLimits.AutoScale())),
		rcmgr.WithMetricsDisabled(),
		// All nodes of a house share one IPv4 address, or one IPv6 network.
		rcmgr.WithLimitPerSubnet([]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: 64}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: 64}, {PrefixLength: 48, ConnCount: 256}}),
		rcmgr.WithNetworkPrefixLimit([]rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix("127.0.0.0/8"),
			ConnCount: math.MaxInt}}, nil),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: netip.MustParsePrefix("127.0.0.0/8")},
				{Prefix: netip.MustParsePrefix("::1/128")}},
			GlobalLimit: rate.Limit{RPS: 200, Burst: 1000},
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: rate.Limit{RPS: 5, Burst: 128}}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: rate.Limit{RPS: 5, Burst: 128}}},
				GracePeriod:      time.Minute,
			},
		}))
}

func (c *Config) check() error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	if err := checkName(c.Crawl); err != nil {
		return fmt.Errorf("crawl: %w", err)
	}
	c.Limits = c.Limits.withDefaults()
	listen, err := listenAddrs(c.Listen)
	if err != nil {
		return err
	}
	for _, a := range listen {
		if c.Secret.IsZero() && !manet.IsIPLoopback(a) {
			return fmt.Errorf("%s: a node without a secret listens on loopback addresses only", a)
		}
	}
	return nil
}
