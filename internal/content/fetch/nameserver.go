package fetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	attempts   = 3 // per query
	maxAliases = 8 // CNAMEs in a chain
	udpSize    = 1232
	minTTL     = time.Second
	maxTTL     = time.Hour
)

// A nameServer is a recursive DNS server.
type nameServer struct {
	addr    string        // host:port
	timeout time.Duration // of one attempt
}

// CheckDNSServer returns an error if text is not the HOST:PORT of a name server.
func CheckDNSServer(text string) error {
	host, port, err := net.SplitHostPort(text)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || n == 0 || host == "" {
		return fmt.Errorf("%q: want HOST:PORT, such as 192.0.2.53:53", text)
	}
	return nil
}

type family struct {
	addrs []netip.Addr
	ttl   time.Duration
	err   error
}

// lookup queries IPv4 and IPv6 addresses at the same time. It returns IPv4 first: hosts with broken IPv6 are more
// common than hosts with broken IPv4.
func (s *nameServer) lookup(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
	if host := strings.TrimSuffix(name, "."); host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, maxTTL, nil // RFC 6761
	}
	if _, ok := dns.IsDomainName(name); !ok {
		return nil, 0, notFound(name)
	}
	six := make(chan family, 1)
	go func() { six <- s.resolve(ctx, name, dns.TypeAAAA) }()
	v4, v6 := s.resolve(ctx, name, dns.TypeA), <-six
	addrs := append(v4.addrs, v6.addrs...)
	switch {
	case len(addrs) > 0:
		return addrs, min(v4.ttl, v6.ttl), nil
	case v4.err != nil && !isNotFound(v4.err):
		return nil, 0, v4.err
	case v6.err != nil && !isNotFound(v6.err):
		return nil, 0, v6.err
	}
	return nil, 0, notFound(name)
}

// resolve follows a name's aliases to addresses of one type. Most servers return the whole chain; otherwise resolve
// sends further queries.
func (s *nameServer) resolve(ctx context.Context, name string, qtype uint16) family {
	name = dns.Fqdn(name)
	f := family{ttl: maxTTL}
	for range maxAliases {
		answer, err := s.query(ctx, name, qtype)
		if err != nil {
			f.err = err
			return f
		}
		next := f.follow(answer.Answer, name)
		if len(f.addrs) > 0 || next == name {
			return f
		}
		name = next
	}
	f.err = fmt.Errorf("%s: more than %d aliases", name, maxAliases)
	return f
}

// follow walks the chain that starts at name in a response, and returns the name where it ends.
func (f *family) follow(answer []dns.RR, name string) string {
	for range maxAliases {
		next := ""
		for _, rr := range answer {
			if !strings.EqualFold(rr.Header().Name, name) || len(f.addrs) == maxAddresses {
				continue
			}
			switch rr := rr.(type) {
			case *dns.A:
				f.add(rr.A)
			case *dns.AAAA:
				f.add(rr.AAAA)
			case *dns.CNAME:
				next = rr.Target
			default:
				continue
			}
			f.ttl = min(f.ttl, max(minTTL, time.Duration(rr.Header().Ttl)*time.Second))
		}
		if len(f.addrs) > 0 || next == "" {
			return name
		}
		name = next
	}
	return name
}

func (f *family) add(ip []byte) {
	if a, ok := netip.AddrFromSlice(ip); ok {
		f.addrs = append(f.addrs, a.Unmap())
	}
}

// query sends a query until it is answered. It uses TCP if the response is too long for UDP.
func (s *nameServer) query(ctx context.Context, name string, qtype uint16) (answer *dns.Msg, err error) {
	question := new(dns.Msg)
	question.SetQuestion(name, qtype)
	question.SetEdns0(udpSize, false)
	for range attempts {
		answer, err = s.exchange(ctx, question, "udp")
		if err == nil && answer.Truncated {
			answer, err = s.exchange(ctx, question, "tcp")
		}
		switch {
		case err == nil && answer.Rcode == dns.RcodeSuccess:
			return answer, nil
		case err == nil && answer.Rcode == dns.RcodeNameError:
			return nil, notFound(name)
		case err == nil:
			err = fmt.Errorf("%s: name server %s returned %s", name, s.addr, dns.RcodeToString[answer.Rcode])
		}
	}
	return nil, err
}

func (s *nameServer) exchange(ctx context.Context, question *dns.Msg, network string) (*dns.Msg, error) {
	client := dns.Client{Net: network, Timeout: s.timeout}
	answer, _, err := client.ExchangeContext(ctx, question, s.addr)
	if err != nil {
		return nil, fmt.Errorf("name server %s: %w", s.addr, err)
	}
	q := question.Question[0]
	if len(answer.Question) != 1 || !strings.EqualFold(answer.Question[0].Name, q.Name) ||
		answer.Question[0].Qtype != q.Qtype {
		return nil, fmt.Errorf("name server %s answered a different query than %s", s.addr, q.Name)
	}
	return answer, nil
}
