package traps

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
)

// Two limits apply to the hosts of a registered domain before any request: some name servers resolve every name, so the
// hosts that are fetched are limited; others resolve no generated name but receive a query for each, so the lookups are
// limited, too.

// hosts are the hosts of a registered domain.
type hosts struct {
	known   map[uint64]bool // hashes of names and ports; true: fetched, not only looked up
	reached int64           // number of fetched hosts
}

const hostsPerNode = 8 // hosts that need as much memory as a node of a tree

// memory returns the memory of the hosts, in tree nodes.
func (h *hosts) memory() int { return len(h.known) / hostsPerNode }

func (h *hosts) put(key uint64, reached bool) {
	if h.known == nil {
		h.known = map[uint64]bool{}
	}
	if reached && !h.known[key] {
		h.reached++
	}
	h.known[key] = reached || h.known[key]
}

// CheckName must be called before the host name of a URL is looked up. It returns the reason to skip the URL; "" if the
// URL may be fetched. must disables the limit for this URL.
func (d *Detector) CheckName(u weburl.URL, must bool) string {
	return d.addHost(u, must, false, d.cfg.Names, "names that were looked up")
}

// CheckHost must be called before a URL is fetched, after its host's robots.txt. It returns the reason to skip the URL;
// "" if the URL may be fetched. must disables the limit for this URL.
func (d *Detector) CheckHost(u weburl.URL, must bool) string {
	return d.addHost(u, must, true, d.cfg.Hosts, "hosts")
}

// addHost counts a URL's host among the looked-up or the fetched ones, unless the limit is reached.
func (d *Detector) addHost(u weburl.URL, must, reached bool, most int64, what string) (why string) {
	if most < 0 {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, key := d.hostOf(u)
	n := int64(len(dom.hosts.known))
	was, known := dom.hosts.known[key]
	if reached {
		n, known = dom.hosts.reached, was
	}
	switch {
	case known || d.isReleased(dom.name):
		return ""
	case n >= most && !must:
		return TooMany(dom.name, n, what)
	}
	before := dom.hosts.memory()
	dom.hosts.put(key, reached)
	d.size += dom.hosts.memory() - before
	return ""
}

// CountedDomain returns the registered domain of a URL's host; "" if the user has released the domain from its limits.
func (d *Detector) CountedDomain(u weburl.URL) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := d.scratch.domain(u.Hostname())
	if d.isReleased(name) {
		return ""
	}
	return name
}

// isReleased reports whether the user has released a domain from its limits.
func (d *Detector) isReleased(domain string) bool {
	return len(d.released) > 0 && d.released[domainPattern(domain)]
}

// TooMany returns the reason to skip a URL of a domain that has reached a limit.
func TooMany(domain string, n int64, what string) string {
	return fmt.Sprintf("%s: %s already", domainPattern(domain), stats.Count(n, what))
}

// domainPattern returns the pattern of all URLs of a registered domain.
func domainPattern(domain string) string { return "*." + domain }

// hostOf returns a URL's registered domain, for any port, and a hash of its host.
func (d *Detector) hostOf(u weburl.URL) (*domain, uint64) {
	key := uint64(14695981039346656037) // FNV-1a: the same in each run
	for _, c := range []byte(u.Host()) {
		key = (key ^ uint64(c)) * 1099511628211
	}
	return d.domainByName(d.scratch.domain(u.Hostname())), key
}

// state returns the hosts to save, eight bytes each: those that were fetched, and those that were only looked up. It
// returns nothing for a domain with fewer hosts than few.
func (h *hosts) state(few int) (reached, others []byte) {
	if len(h.known) < few {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(h.known)) {
		if h.known[key] {
			reached = binary.LittleEndian.AppendUint64(reached, key)
		} else {
			others = binary.LittleEndian.AppendUint64(others, key)
		}
	}
	return reached, others
}

func (h *hosts) restore(keys []byte, reached bool) {
	for ; len(keys) >= 8; keys = keys[8:] {
		h.put(binary.LittleEndian.Uint64(keys), reached)
	}
}

// fewHosts returns the number of hosts from which on a domain's hosts are saved with the crawl.
func (d *Detector) fewHosts() int {
	few := int64(64)
	for _, most := range []int64{d.cfg.Hosts, d.cfg.Names} {
		if most > 0 {
			few = min(few, max(most/100, 1))
		}
	}
	return int(few)
}
