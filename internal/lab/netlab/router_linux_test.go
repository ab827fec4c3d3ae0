package netlab

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// A host behind a router reaches others, which see the router's address; others cannot reach the host.
func TestRouter(t *testing.T) {
	if _, err := tool("nft"); err != nil {
		t.Skip("SKIPPED:", err)
	}
	l, server, router := pairOf(t)
	h, err := l.Behind(router, "home", "")
	if err != nil {
		t.Fatal(err)
	}
	echo(t, server)
	echo(t, h)
	c := mustDial(t, h, "tcp4", server.Addr())
	mustPing(t, c)

	var from net.Addr
	in := inboxAt(t, server, ":9")
	out := mustDialUDP(t, h, server.Addr(), 9)
	if _, err := out.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	in.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, from, err = in.ReadFrom(make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	if seen := from.(*net.UDPAddr).AddrPort().Addr(); seen != router.Addr() {
		t.Errorf("the server sees %v, the router is %v", seen, router.Addr())
	}
	for _, to := range []netip.Addr{h.Addr(), router.Addr()} {
		if c, err := dial(t, server, "tcp4", to); err == nil {
			t.Errorf("the server reaches %v", c.RemoteAddr())
		}
	}
}

func inboxAt(t *testing.T, h *Host, at string) (c net.PacketConn) {
	t.Helper()
	if err := h.Do(func() (err error) { c, err = net.ListenPacket("udp4", at); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustDialUDP(t *testing.T, h *Host, to netip.Addr, port uint16) (c net.Conn) {
	t.Helper()
	err := h.Do(func() (err error) {
		c, err = net.Dial("udp4", netip.AddrPortFrom(to, port).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
