package synthweb

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// A listener belongs to one host, or to several if host is -1.
type listener struct {
	net.Listener
	host int
}

// listen opens all addresses on one port. It falls back to 127.0.0.1 if there is no other address and hosts have names.
func (s *Server) listen() error {
	n := s.opts.Addresses
	if len(s.opts.On) > 0 {
		n = len(s.opts.On)
	}
	switch {
	case s.web.cfg.ByAddress && n > 0:
		return errors.New("serve the synthetic web: its hosts have one address each, and cannot share fewer")
	case s.web.cfg.ByAddress:
		n = len(s.web.hosts)
	case n <= 0:
		n = min(len(s.web.hosts), 256)
	}
	if n > maxAddresses {
		return fmt.Errorf("serve the synthetic web: %d addresses are available, not %d", maxAddresses, n)
	}
	var err error
	for range 10 { // a port that is free on one address may be taken on another
		if err = s.listenOn(n); err == nil {
			return nil
		}
		if s.opts.Port != 0 {
			break
		}
	}
	if n > 1 && !s.web.cfg.ByAddress && len(s.opts.On) == 0 && s.listenOn(1) == nil {
		s.Fallback = err
		return nil
	}
	return err
}

func (s *Server) listenOn(n int) error {
	s.addrs, s.doors, s.port = nil, nil, s.opts.Port
	for i := range n {
		addr := s.address(i, n)
		s.addrs = append(s.addrs, addr)
		if s.web.cfg.ByAddress && s.web.hosts[i].closed() {
			continue
		}
		l, err := net.Listen("tcp4", netip.AddrPortFrom(addr, uint16(s.port)).String())
		if err != nil {
			s.closeListeners()
			return fmt.Errorf("serve the synthetic web: %w", err)
		}
		s.port = l.Addr().(*net.TCPAddr).Port
		s.doors = append(s.doors, listener{l, s.only(i, n)})
	}
	return nil
}

// address returns the i-th of the n addresses on which the server listens.
func (s *Server) address(i, n int) netip.Addr {
	switch {
	case len(s.opts.On) > 0:
		return s.opts.On[i]
	case n == 1 && !s.web.cfg.ByAddress:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return loopback(i)
}

// closed reports whether nothing listens for the host, although it has an address.
func (h *host) closed() bool { return h.traits.has(Refused) || h.traits.has(Mute) }

// only returns the only host on address i of n; -1 if there are several.
func (s *Server) only(i, n int) int {
	if len(s.web.hosts) > n {
		return -1
	}
	return i
}

func (s *Server) closeListeners() {
	for _, d := range s.doors {
		d.Close()
	}
}

// refusing is an address on which nothing listens.
var refusing = netip.AddrFrom4([4]byte{127, 78, 0, 1})

// Addr returns the address of a host by name. It is invalid if the host does not exist or is mute.
func (s *Server) Addr(host string) netip.AddrPort {
	i, ok := s.web.hostOf(host)
	if !ok || s.web.hosts[i].traits.has(Mute) && !s.web.cfg.ByAddress {
		return netip.AddrPort{}
	}
	addr := s.addrs[int(i)%len(s.addrs)]
	if s.web.hosts[i].traits.has(Refused) && !s.web.cfg.ByAddress {
		addr = refusing
	}
	return netip.AddrPortFrom(addr, uint16(s.port))
}
