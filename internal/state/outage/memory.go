package outage

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
)

// Limits of the memory, so that one owner cannot fill it.
const (
	maxHosts  = 64 // hosts that have answered
	perDomain = 4
	maxPinned = maxHosts / 2
	maxSeeds  = 16
	seedEvery = 4 // every fourth target is a seed, as long as there are any

	// minimum silence of a displaced host; if many hosts answer all the time, displacing them is not worth the work
	displaceAfter = time.Second

	// MaxTargets is the maximum number of origins in a check.
	MaxTargets = maxHosts + maxSeeds
)

// A memory contains the hosts that can disprove an outage: hosts that have answered, and seeds. The first host of each
// of the first domains that answered is pinned: other domains do not displace it.
type memory struct {
	hosts  []rememberedHost
	index  map[uint64]int // index in hosts by hash
	pinned int
	seeds  []rememberedHost // one per domain
}

type rememberedHost struct {
	Origin
	domain string
	at     time.Time // of the last answer
	pinned bool
}

// add adds an origin that has answered, or updates it. The fifth host of a domain displaces another of that domain. If
// the memory is full, the host that has been silent for longest is displaced.
func (m *memory) add(at time.Time, origin Origin) {
	if i, known := m.index[origin.Hash]; known {
		h := &m.hosts[i]
		h.LooksUp, h.Proxied, h.at = origin.LooksUp, origin.Proxied, at
		return
	}
	if m.index == nil {
		m.index = make(map[uint64]int, maxHosts)
	}
	h := rememberedHost{Origin: origin, domain: domainOf(origin.URL), at: at}
	same, oldestOfDomain, oldest := 0, -1, -1
	for i := range m.hosts {
		other := &m.hosts[i]
		if other.domain == h.domain {
			same++
		}
		if other.pinned {
			continue
		}
		if other.domain == h.domain && (oldestOfDomain < 0 || other.at.Before(m.hosts[oldestOfDomain].at)) {
			oldestOfDomain = i
		}
		if oldest < 0 || other.at.Before(m.hosts[oldest].at) {
			oldest = i
		}
	}
	i := oldest // the host to displace
	if same == perDomain {
		i = oldestOfDomain
	}
	if same < perDomain && len(m.hosts) < maxHosts {
		i = len(m.hosts)
		m.hosts = append(m.hosts, h)
	} else if at.Sub(m.hosts[i].at) < displaceAfter {
		return
	} else {
		delete(m.index, m.hosts[i].Hash)
	}
	if same == 0 && m.pinned < maxPinned {
		h.pinned = true
		m.pinned++
	}
	h.URL, h.domain = strings.Clone(h.URL), strings.Clone(h.domain)
	m.hosts[i], m.index[origin.Hash] = h, i
}

func (m *memory) addSeed(origin Origin) {
	if len(m.seeds) == maxSeeds {
		return
	}
	domain := domainOf(origin.URL)
	if !slices.ContainsFunc(m.seeds, func(s rememberedHost) bool { return s.domain == domain }) {
		origin.URL = strings.Clone(origin.URL)
		m.seeds = append(m.seeds, rememberedHost{Origin: origin, domain: strings.Clone(domain)})
	}
}

func (m *memory) remove(hash uint64) {
	i, known := m.index[hash]
	if !known {
		return
	}
	if m.hosts[i].pinned {
		m.pinned--
	}
	last := len(m.hosts) - 1
	m.hosts[i] = m.hosts[last]
	m.index[m.hosts[i].Hash] = i
	delete(m.index, hash)
	m.hosts = m.hosts[:last]
}

// forget removes all hosts that have answered.
func (m *memory) forget() { m.hosts, m.index, m.pinned = nil, nil, 0 }

// targets returns the matching origins, the most promising first: of each domain the host that answered last, then the
// second of each, and so on, with seeds in between. Domains with a failing host come last. If many hosts fail at once,
// the others continue to answer, so those that answered last are most likely up.
func (m *memory) targets(match func(Origin) bool, failing []uint64) (all []string) {
	hosts := slices.DeleteFunc(slices.Clone(m.hosts), func(h rememberedHost) bool { return !match(h.Origin) })
	slices.SortFunc(hosts, func(a, b rememberedHost) int { return b.at.Compare(a.at) })
	fails := map[string]int{}                // 1 if a host of the domain fails
	rounds := make(map[uint64]int, maxHosts) // for each host, how many of its domain come before it
	met := map[string]int{}
	for i := range hosts {
		h := &hosts[i]
		if slices.Contains(failing, h.Hash) {
			fails[h.domain] = 1
		}
		rounds[h.Hash] = met[h.domain]
		met[h.domain]++
	}
	slices.SortStableFunc(hosts, func(a, b rememberedHost) int {
		return cmp.Or(cmp.Compare(fails[a.domain], fails[b.domain]), cmp.Compare(rounds[a.Hash], rounds[b.Hash]))
	})
	seeds := slices.DeleteFunc(slices.Clone(m.seeds), func(s rememberedHost) bool {
		_, listed := rounds[s.Hash]
		return listed || !match(s.Origin)
	})
	for len(hosts) > 0 || len(seeds) > 0 {
		if len(seeds) > 0 && (len(hosts) == 0 || len(all)%seedEvery == seedEvery-1) {
			all, seeds = append(all, seeds[0].URL), seeds[1:]
			continue
		}
		all, hosts = append(all, hosts[0].URL), hosts[1:]
	}
	return all
}

// domains returns the number of registered domains of the hosts that have answered.
func (m *memory) domains() int {
	met := map[string]bool{}
	for i := range m.hosts {
		met[m.hosts[i].domain] = true
	}
	return len(met)
}

// domainOf returns an origin's registered domain. For an IPv6 address it is the /48 network, because one owner has all
// of it.
func domainOf(origin string) string {
	hostname := item.HostnameOf(item.HostOf(origin))
	if strings.Contains(hostname, ":") {
		if a, err := netip.ParseAddr(strings.Trim(hostname, "[]")); err == nil {
			if p, err := a.WithZone("").Prefix(48); err == nil && a.Is6() {
				return p.String()
			}
		}
	}
	return weburl.Domain(hostname)
}
