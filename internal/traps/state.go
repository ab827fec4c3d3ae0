package traps

import (
	"slices"
	"strings"
)

// A State is what of a detector is kept with a crawl: of domains where something was in vain, or that have many hosts.
type State struct {
	Domains []DomainState `json:"domains,omitempty"`
}

// A DomainState is a domain's part of a [State].
type DomainState struct {
	Name     string         `json:"name"`
	Hosts    []byte         `json:"hosts,omitempty"` // eight bytes for each
	Names    []byte         `json:"names,omitempty"` // of others that were looked up, likewise
	Patterns []PatternState `json:"patterns,omitempty"`
}

// A PatternState is a pattern's part of a [State].
type PatternState struct {
	Names  []string `json:"names"` // from the host to the query
	Tried  uint32   `json:"tried"`
	Fresh  uint32   `json:"new"`
	Left   int32    `json:"left"`
	Out    uint32   `json:"out,omitempty"`
	Wait   uint32   `json:"wait,omitempty"`
	Closed bool     `json:"closed,omitempty"`
}

// State is what is to be kept, in one order for one detector.
func (d *Detector) State() *State {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &State{}
	for _, all := range []map[string]*domain{d.old, d.young} {
		for _, dom := range all {
			if kept := dom.state(d.few()); len(kept.Patterns) > 0 || len(kept.Hosts)+len(kept.Names) > 0 {
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
		dom.root.states(nil, &s.Patterns)
	}
	return s
}

func (n *node) states(names []string, out *[]PatternState) {
	if b := n.end; b != nil && b.tried > 0 {
		*out = append(*out, PatternState{Names: slices.Clone(names), Tried: b.tried, Fresh: b.fresh, Left: b.left,
			Out: b.out, Wait: b.wait, Closed: b.closed})
	}
	if n.children == 0 {
		return
	}
	for _, c := range slices.SortedFunc(n.each(), func(a, b *node) int { return strings.Compare(a.name, b.name) }) {
		c.states(append(names, c.name), out)
	}
}

// Restore gives a new detector what was kept of one before. A nil state is nothing.
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
		for j := range kept.Patterns {
			dom.restore(&kept.Patterns[j])
		}
		d.young[dom.name] = dom
		d.size += 1 + dom.nodes + dom.hosts.places()
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
	w.last().ends(budget{left: min(p.Left, maxBudget), tried: p.Tried, fresh: p.Fresh, out: p.Out, wait: p.Wait,
		closed: p.Closed})
}
