package plan

import (
	"math"
	"net/netip"
	"testing"
	"time"
)

func host(name string, pages int64, delay, answer float64) Host {
	return Host{Host: name, Allowed: Yes, Pages: &pages, Delay: delay, Answer: answer}
}

func unknown(name string, delay float64) Host {
	return Host{Host: name, Allowed: Yes, Delay: delay, Answer: 0.5}
}

func TestEstimate(t *testing.T) {
	at := func(h Host) Host { h.addr = netip.MustParseAddr("192.0.2.1"); return h }
	for name, c := range map[string]struct {
		hosts   []Host
		a       Assumptions
		pages   int64
		seconds float64
		by      string
		enough  int
	}{
		"the longest": {[]Host{host("a", 100, 1, 0.5), host("b", 10, 1, 0.5)}, Assumptions{}, 110, 150, "a", 1},
		"one at a time": {[]Host{host("a", 100, 0, 0.5), host("b", 100, 0, 0.5), host("c", 100, 0, 0.5)},
			Assumptions{Hosts: 1}, 300, 150, "--concurrency", 4},
		"an address": {[]Host{at(host("a", 100, 1, 0.0001)), at(host("b", 100, 1, 0.0001))},
			Assumptions{AddrDelay: time.Second},
			200, 200, "2 hosts at 192.0.2.1 (--ip-delay)", 1},
		"a rate": {[]Host{host("a", 100, 1, 0.5)}, Assumptions{Rate: 0.1}, 100, 1000, "--max-rate", 1},
		"a line": {[]Host{host("a", 100, 1, 0.0001)}, Assumptions{Bandwidth: 1000, PageBytes: 50_000}, 100, 5000,
			"--bandwidth", 1},
		"a limit": {[]Host{host("a", 100, 1, 0.0001), host("b", 100, 1, 0.0001)}, Assumptions{Pages: 60}, 60, 30,
			"--limit", 1},
		"a limit of size": {[]Host{host("a", 100, 1, 0.0001)}, Assumptions{Bytes: 500, PageBytes: 100}, 5, 5, "--size-limit",
			1},
		"a limit of time": {[]Host{host("a", 100, 1, 0.0001)}, Assumptions{Time: time.Minute}, 59, 60, "--time-limit", 1},
		"a high limit":    {[]Host{host("a", 100, 1, 0.0001)}, Assumptions{Pages: 1000}, 100, 100, "a", 1},
		"an unknown host": {[]Host{host("a", 100, 1, 0.0001), unknown("b", 0.5)}, Assumptions{}, 100, 100, "a", 1},
		"a limit that unknown hosts may fill": {[]Host{host("a", 10, 1, 0.0001), unknown("b", 0.5)}, Assumptions{Pages: 100},
			100, 90, "--limit, if the hosts of unknown size have as many", 1},
		"several connections": {[]Host{host("a", 100, 0, 2)}, Assumptions{Hosts: 64, PerHost: 4}, 100, 50, "a", 2},
	} {
		p := Plan{Hosts: c.hosts}
		p.Estimate(c.a)
		s := p.Sum
		if s.Pages != c.pages || math.Abs(s.Seconds-c.seconds) > 0.01*c.seconds || s.By != c.by || s.Concurrency != c.enough {
			t.Errorf("%s: %d pages in %.1f s by %q, %d at once; want %d in %.1f by %q, %d", name, s.Pages, s.Seconds, s.By,
				s.Concurrency, c.pages, c.seconds, c.by, c.enough)
		}
	}
}
