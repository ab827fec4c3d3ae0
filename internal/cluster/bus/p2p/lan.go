package p2p

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
)

// openLAN begins to look for nodes in the local network, if that is wanted. What they announce there is a name that
// follows from the secret, so that other clusters' nodes do not even try.
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

// HandlePeerFound connects one, unless it is.
func (f lanHandler) HandlePeerFound(who peer.AddrInfo) {
	if who.ID == f.id || len(f.host.Network().ConnsToPeer(who.ID)) > 0 {
		return
	}
	select {
	case f.dials <- struct{}{}:
	default:
		return // it is announced again
	}
	ok := f.work.Go(func() {
		defer func() { <-f.dials }()
		ctx, cancel := context.WithTimeout(f.work.ctx, dialTime)
		defer cancel()
		if _, err := f.dialPeer(ctx, who.ID, ranked(who.Addrs)...); err != nil {
			f.log("a node in the local network cannot be reached: %v", err)
		}
	})
	if !ok {
		<-f.dials
	}
}
