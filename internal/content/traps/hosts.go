package traps

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
)

// The hosts of a registered domain are bounded in two steps, before any of them is asked for anything: a name server
// that knows every name makes hosts, and one that knows none of those that a site makes up is asked for each.

// hosts are those of a registered domain.
type hosts struct {
	known   map[uint64]bool // hashes of names and ports; true: more than the name server was asked
	reached int64           // of these
}

const hostsPerNode = 8 // hosts that take as much memory as a place in a tree

// memory is how much memory they take, in places of a tree.
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

// CheckName asks for a URL before its host's name is looked up. It says why it is left out; "" if it is not, or must come.
func (d *Detector) CheckName(u weburl.URL, must bool) string {
	return d.addHost(u, must, false, d.cfg.Names, "names that were looked up")
}

// CheckHost asks for a URL before it is fetched, as far as its host is concerned, of which robots.txt was read by then. It
// says why it is left out; "" if it is not, or must come.
func (d *Detector) CheckHost(u weburl.URL, must bool) string {
	return d.addHost(u, must, true, d.cfg.Hosts, "hosts")
}

// addHost counts a URL's host among those that were looked up, or reached, unless there are most of them already.
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

// CountedDomain is the registered domain of a URL's host; "" if it may have whatever it has.
func (d *Detector) CountedDomain(u weburl.URL) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := d.scratch.domain(u.Hostname())
	if d.isReleased(name) {
		return ""
	}
	return name
}

// isReleased reports whether a domain's bounds were.
func (d *Detector) isReleased(domain string) bool {
	return len(d.released) > 0 && d.released[domainPattern(domain)]
}

// TooMany is why a URL of a domain is left out that has so many already.
func TooMany(domain string, n int64, what string) string {
	return fmt.Sprintf("%s: %s already", domainPattern(domain), stats.Count(n, what))
}

// domainPattern is the pattern of all URLs of a registered domain.
func domainPattern(domain string) string { return "*." + domain }

// hostOf is a URL's registered domain, at any port, and a hash of its host.
func (d *Detector) hostOf(u weburl.URL) (*domain, uint64) {
	key := uint64(14695981039346656037) // FNV-1a: the same in each run
	for _, c := range []byte(u.Host()) {
		key = (key ^ uint64(c)) * 1099511628211
	}
	return d.domainByName(d.scratch.domain(u.Hostname())), key
}

// state is what is kept of them: eight bytes for each, of those that were reached and of the others. Of few nothing is.
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

// fewHosts is how many hosts a domain has of which none need be remembered when the crawl is continued.
func (d *Detector) fewHosts() int {
	few := int64(64)
	for _, most := range []int64{d.cfg.Hosts, d.cfg.Names} {
		if most > 0 {
			few = min(few, max(most/100, 1))
		}
	}
	return int(few)
}
