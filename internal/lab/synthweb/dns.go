package synthweb

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

const ttl = 60 // seconds

// A dnsServer answers address queries for a server's hosts, over UDP and TCP.
type dnsServer struct {
	s       *Server
	addr    string
	servers []*dns.Server
	running sync.WaitGroup
}

func serveDNS(s *Server, on netip.Addr) (*dnsServer, error) {
	if on.IsLoopback() {
		on = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	udp, tcp, err := listenBoth(on)
	if err != nil {
		return nil, fmt.Errorf("serve DNS for the synthetic web: %w", err)
	}
	d := &dnsServer{s: s, addr: udp.LocalAddr().String()}
	var ready sync.WaitGroup
	for _, server := range []*dns.Server{{PacketConn: udp}, {Listener: tcp}} {
		ready.Add(1)
		server.Handler = dns.HandlerFunc(d.answer)
		server.NotifyStartedFunc = ready.Done
		d.servers = append(d.servers, server)
		d.running.Go(func() { _ = server.ActivateAndServe() }) // until Shutdown
	}
	ready.Wait()
	return d, nil
}

// listenBoth opens the same free port of an address for UDP and TCP.
func listenBoth(on netip.Addr) (udp net.PacketConn, tcp net.Listener, err error) {
	for range 10 {
		if udp, err = net.ListenPacket("udp4", netip.AddrPortFrom(on, 0).String()); err != nil {
			return nil, nil, err
		}
		if tcp, err = net.Listen("tcp4", udp.LocalAddr().String()); err == nil {
			return udp, tcp, nil
		}
		_ = udp.Close() // the port is taken for TCP
	}
	return nil, nil, err
}

func (d *dnsServer) close() {
	for _, server := range d.servers {
		_ = server.Shutdown() // an error only means that it had already ended
	}
	d.running.Wait()
}

func (d *dnsServer) answer(w dns.ResponseWriter, q *dns.Msg) {
	d.s.tally.counts[questions].Add(1)
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	if len(q.Question) != 1 {
		m.Rcode = dns.RcodeFormatError
	} else {
		d.fill(m, q.Question[0])
	}
	_ = w.WriteMsg(m) // the client may have left
}

// fill adds the IPv4 addresses to a reply; hosts have no other records.
func (d *dnsServer) fill(m *dns.Msg, q dns.Question) {
	addr := d.s.Addr(strings.ToLower(strings.TrimSuffix(q.Name, ".")))
	if addr.IsValid() && q.Qtype == dns.TypeA {
		head := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: ttl}
		m.Answer = append(m.Answer, &dns.A{Hdr: head, A: addr.Addr().AsSlice()})
		return
	}
	if !addr.IsValid() {
		m.Rcode = dns.RcodeNameError
	}
	zone := strings.TrimPrefix(d.s.web.cfg.domain(), ".") + "."
	m.Ns = append(m.Ns, &dns.SOA{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ttl},
		Ns: "ns." + zone, Mbox: "nobody." + zone, Serial: 1, Refresh: ttl, Retry: ttl, Expire: ttl, Minttl: ttl})
}
