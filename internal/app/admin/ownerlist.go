package admin

import (
	"cmp"
	"slices"
	"strings"

	"kumo/internal/app/inspect"
	"kumo/internal/base/item"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// An ownerList retains the first hosts, up to a limit, and counts all of them.
type ownerList struct {
	owners inspect.Owners
	limit  int
	by     map[strategy.Node]*inspect.OwnedBy
	table  *quorum.Table

	placement *Placement
}

// add counts a host, and retains it if listed is true.
func (l *ownerList) add(h central.Host, listed bool) {
	by := l.by[h.Owner]
	if by == nil {
		by = &inspect.OwnedBy{Owner: h.Owner.Name(), Node: string(h.Owner), Gone: hasLeft(h.Owner, l.table)}
		l.by[h.Owner] = by
	}
	by.Hosts++
	if h.State == string(inspect.HostParked) {
		by.Parked++
	}
	if !listed {
		return
	}
	l.owners.Hosts = append(l.owners.Hosts, *l.placement.ownedFromTable(h, l.table))
	if l.limit > 0 && len(l.owners.Hosts) >= 2*l.limit+1000 { // rarely, so that add stays cheap
		l.truncate()
	}
}

// truncate sorts the hosts and retains the first ones, up to the limit.
func (l *ownerList) truncate() {
	slices.SortFunc(l.owners.Hosts, func(a, b inspect.Owned) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Host, b.Host))
	})
	if n := len(l.owners.Hosts); l.limit > 0 && n > l.limit {
		l.owners.Hosts = l.owners.Hosts[:l.limit]
		l.owners.More += n - l.limit
	}
}

func (l *ownerList) all() *inspect.Owners {
	l.truncate()
	for _, by := range l.by {
		l.owners.By = append(l.owners.By, *by)
	}
	slices.SortFunc(l.owners.By, func(a, b inspect.OwnedBy) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Node, b.Node))
	})
	return &l.owners
}

// A matcher matches hosts by name or domain, and records which names were matched.
type matcher struct{ matched map[string]bool }

func newMatcher(names []string) *matcher {
	m := &matcher{matched: map[string]bool{}}
	for _, n := range names {
		m.matched[n] = false
	}
	return m
}

// match reports whether a name in the list is the host, the host of the slice, or a domain above it. An empty list
// matches all hosts.
func (m *matcher) match(host string) (is bool) {
	host = item.HostOfSlice(host)
	if len(m.matched) == 0 {
		return true
	}
	try := func(name string) {
		if _, named := m.matched[name]; named {
			m.matched[name], is = true, true
		}
	}
	try(host)
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
		try(host)
	}
	for domain, more := host, true; more; {
		if _, domain, more = strings.Cut(domain, "."); more {
			try(domain)
		}
	}
	return is
}

// missing returns the names that matched no host.
func (m *matcher) missing() (all []string) {
	for name, met := range m.matched {
		if !met {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
