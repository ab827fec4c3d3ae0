package stats

import (
	"slices"
	"strings"
	"time"
)

// maxHosts limits the hosts that are counted individually. Beyond it, the faster half is dropped, because the report
// lists the slowest hosts.
const maxHosts = 1 << 15

// A Host has the counts of one host.
type Host struct {
	Pages int64         // without recrawls
	Time  time.Duration // total response time
	Bytes int64         // of all visits, as sent over the wire
}

func (h Host) mean() float64 { return h.Time.Seconds() / float64(h.Pages) }

// countHost counts a visit. A host is added with its first page.
func (c *Counter) countHost(v *Visit) {
	first := v.Status != 0 && !v.Recrawl
	host := v.Host
	h, known := c.s.Hosts[host]
	switch {
	case !known && !first:
		return
	case !known:
		host = strings.Clone(host)
	}
	if first {
		h.Pages++
		h.Time += v.Took
	}
	h.Bytes += v.Bytes
	c.s.Hosts[host] = h
	c.dropFastest()
}

// dropFastest drops the faster half of the hosts if there are too many.
func (c *Counter) dropFastest() {
	if len(c.s.Hosts) <= maxHosts {
		return
	}
	all := make([]SlowHost, 0, len(c.s.Hosts))
	for name, h := range c.s.Hosts {
		all = append(all, SlowHost{Host: name, Seconds: h.mean()})
	}
	slices.SortFunc(all, bySlowness)
	kept := make(map[string]Host, maxHosts)
	for _, h := range all[:maxHosts/2] {
		kept[h.Host] = c.s.Hosts[h.Host]
	}
	c.s.Hosts, c.s.Partial = kept, true
}

// HostPages returns the number of URLs of a host that were answered. It returns false if hosts were dropped, since the
// number is not reliable then.
func (c *Counter) HostPages(host string) (n int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Hosts[host].Pages, !c.s.Partial
}
