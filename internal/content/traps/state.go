package traps

import (
	"maps"
	"slices"
	"strings"
)

// A State is the saved state of a detector: the domains with vain pages, and those with many hosts.
type State struct {
	Domains []DomainState `json:"domains,omitempty"`
	Vain    []byte        `json:"vain,omitempty"` // the crawl's URLs that were found on vain pages
}

// A DomainState is the saved state of a domain.
type DomainState struct {
	Name     string         `json:"name"`
	Hosts    []byte         `json:"hosts,omitempty"` // fetched hosts, eight bytes each
	Names    []byte         `json:"names,omitempty"` // hosts that were only looked up, eight bytes each
	Patterns []PatternState `json:"patterns,omitempty"`
	Areas    []string       `json:"areas,omitempty"` // hosts and directories that were entered from outside
}

// A PatternState is the saved state of a pattern.
type PatternState struct {
	Names     []string `json:"names"` // from the host to the query
	Tried     uint32   `json:"tried"`
	Fresh     uint32   `json:"new"`
	Remaining int32    `json:"left"`
	Suspected bool     `json:"closed,omitempty"`

	CrossHost uint32 `json:"strangers,omitempty"`
	Endless   bool   `json:"endless,omitempty"`
}

// State returns the state to save. The order is deterministic.
func (d *Detector) State() *State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &State{}
	for _, all := range []map[string]*domain{d.old, d.young} {
		for _, dom := range all {
			if kept := dom.state(d.fewHosts()); len(kept.Patterns) > 0 || len(kept.Hosts)+len(kept.Names) > 0 {
				s.Domains = append(s.Domains, kept)
			}
		}
	}
	slices.SortFunc(s.Domains, func(a, b DomainState) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (dom *domain) state(few int) DomainState {
	s := DomainState{Name: dom.name}
	s.Hosts, s.Names = dom.hosts.state(few)
	if dom.root.tried > dom.root.fresh {
		var g gatherer
		g.gather(&dom.root)
		s.Patterns = g.found
		s.Areas = slices.Sorted(maps.Keys(dom.areas.numbers))
	}
	return s
}

// A gatherer traverses a tree in the order of names. It needs few allocations for many patterns.
type gatherer struct {
	found []PatternState
	names []string // path to the current node
	arena []string // backing array of all patterns' names
	sort  []*node  // children of the nodes on the path
}

func (g *gatherer) gather(n *node) {
	if b := n.end; b != nil && b.tried > 0 {
		begin := len(g.arena)
		g.arena = append(g.arena, g.names...)
		g.found = append(g.found, PatternState{Names: g.arena[begin:len(g.arena):len(g.arena)], Tried: b.tried,
			Fresh: b.fresh, Remaining: b.remaining, Suspected: b.suspected, CrossHost: b.crossHost, Endless: b.endless})
	}
	begin := len(g.sort)
	for c := n.first; c != nil; c = c.next {
		g.sort = append(g.sort, c)
	}
	end := len(g.sort)
	slices.SortFunc(g.sort[begin:end], func(a, b *node) int { return strings.Compare(a.name, b.name) })
	for i := begin; i < end; i++ {
		c := g.sort[i]
		g.names = append(g.names, c.name)
		g.gather(c)
		g.names = g.names[:len(g.names)-1]
	}
	g.sort = g.sort[:begin]
}

// Restore loads a saved state into a new detector. s may be nil.
func (d *Detector) Restore(s *State) {
	if s == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range s.Domains {
		kept := &s.Domains[i]
		dom := &domain{name: kept.Name}
		dom.hosts.restore(kept.Hosts, true)
		dom.hosts.restore(kept.Names, false)
		for _, directory := range kept.Areas[:min(len(kept.Areas), maxAreas)] {
			dom.areas.add(directory)
		}
		for j := range kept.Patterns {
			dom.restore(&kept.Patterns[j])
		}
		d.young[dom.name] = dom
		d.size += 1 + dom.nodes + dom.hosts.memory() + dom.areas.memory()
	}
}

func (dom *domain) restore(p *PatternState) {
	if len(p.Names) == 0 || len(p.Names) > maxSegments+3 {
		return
	}
	w := walk{scratch: &scratch{path: []*node{&dom.root}}, domain: dom, limit: 1 << 30, make: true, exact: true}
	for _, name := range p.Names {
		plain := name != "" && !strings.ContainsAny(name, "{?")
		w.step(name, plain, 1<<30)
	}
	for _, n := range w.path {
		n.count(p.Tried, p.Fresh)
	}
	w.last().setEnd(budget{remaining: min(p.Remaining, maxBudget), tried: p.Tried, fresh: p.Fresh, suspected: p.Suspected,
		crossHost: p.CrossHost, endless: p.Endless})
}
