package p2p

import (
	"kumo/internal/base/bounded"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	maxBanned = 1024
	banTime   = time.Minute // how long a peer that has sent garbage is refused
)

// A gater refuses peers that have sent garbage lately, and, without a secret, all addresses that are not loopback.
type gater struct {
	loopbackOnly bool // there is no secret
	mu           sync.Mutex
	banned       *bounded.Recent[peer.ID, time.Time] // end of each ban; guarded by mu
}

func newGater(loopback bool) *gater {
	return &gater{loopbackOnly: loopback, banned: bounded.NewRecent[peer.ID, time.Time](maxBanned)}
}

// InterceptPeerDial implements libp2p's interface.
func (g *gater) InterceptPeerDial(p peer.ID) bool { return !g.isBanned(p) }

// InterceptAddrDial refuses to dial other machines without a secret: membership could not be proved there.
func (g *gater) InterceptAddrDial(_ peer.ID, to ma.Multiaddr) bool {
	return !g.loopbackOnly || manet.IsIPLoopback(to)
}

// InterceptAccept implements libp2p's interface.
func (g *gater) InterceptAccept(c network.ConnMultiaddrs) bool {
	return !g.loopbackOnly || manet.IsIPLoopback(c.RemoteMultiaddr())
}

// InterceptSecured refuses banned peers. Over TCP the peer has proved its membership before, over QUIC it has not.
func (g *gater) InterceptSecured(_ network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return !g.isBanned(p)
}

// InterceptUpgraded implements libp2p's interface.
func (g *gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

func (g *gater) isBanned(p peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, is := g.banned.Get(p)
	return is && time.Now().Before(until)
}

func (g *gater) ban(p peer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.banned.Put(p, time.Now().Add(banTime))
}

// mayDial is InterceptAddrDial for a connection that libp2p has not made.
func (g *gater) mayDial(c net.Conn) bool {
	a, err := manet.FromNetAddr(c.RemoteAddr())
	return err == nil && g.InterceptAddrDial("", a)
}
