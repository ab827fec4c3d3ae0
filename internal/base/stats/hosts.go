package stats

import (
	"slices"
	"strings"
	"time"
)

// maxHosts is of how many hosts the pages are counted apart. When there are more, those that answer soonest are left
// out, half of them at a time: what the report names are the slowest.
const maxHosts = 1 << 15

// A Host is what was counted of one host.
type Host struct {
	Pages int64         // without recrawls
	Time  time.Duration // that their answers took, added up
	Bytes int64         // of all visits, over the wire
}

func (h Host) mean() float64 { return h.Time.Seconds() / float64(h.Pages) }

// countHost counts a visit to a host that gives a page, or has given one.
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

// dropFastest keeps the number of hosts bounded.
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

// HostPages is the number of URLs of a host answered so far; false if it is not known, since too many hosts are.
func (c *Counter) HostPages(host string) (n int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Hosts[host].Pages, !c.s.Partial
}
