package p2p

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
)

// openLAN starts to look for nodes in the local network, if configured. The announced service name is derived from the
// secret, so nodes of other clusters do not even try to connect.
func (m *Messenger) openLAN() error {
	if !m.cfg.LAN || m.cfg.Secret.IsZero() {
		return nil
	}
	word, err := m.cfg.Secret.Derive("p2p local network of "+m.cfg.Crawl, 8)
	if err != nil {
		return err
	}
	s := mdns.NewMdnsService(m.host, "_kumo-"+hex.EncodeToString(word)+"._udp", lanHandler{m})
	if err := s.Start(); err != nil {
		return fmt.Errorf("look for nodes in the local network: %w", err)
	}
	m.work.Go(func() {
		<-m.work.ctx.Done()
		_ = s.Close()
	})
	return nil
}

type lanHandler struct{ *Messenger }

// HandlePeerFound connects a peer, unless it is connected.
func (f lanHandler) HandlePeerFound(who peer.AddrInfo) {
	if who.ID == f.id || len(f.host.Network().ConnsToPeer(who.ID)) > 0 {
		return
	}
	select {
	case f.dials <- struct{}{}:
	default:
		return // it will be announced again
	}
	ok := f.work.Go(func() {
		defer func() { <-f.dials }()
		ctx, cancel := context.WithTimeout(f.work.ctx, dialTime)
		defer cancel()
		if _, err := f.dialPeer(ctx, who.ID, ranked(who.Addrs)...); err != nil {
			f.log("cannot reach a node in the local network: %v", err)
		}
	})
	if !ok {
		<-f.dials
	}
}
