package sim

import (
	"fmt"
	"math/bits"

	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// pendingWork describes unfinished work; "" if there is none.
func (w *world) pendingWork() string {
	t, err := w.table()
	if err != nil {
		return err.Error()
	}
	if t.Finalized != t.Epoch {
		return fmt.Sprintf("epoch %d is not finalized", t.Epoch)
	}
	for _, m := range w.machines {
		if s := w.busy(m, t); s != "" {
			return s
		}
	}
	return ""
}

func (w *world) table() (*quorum.Table, error) {
	e := w.reg.values[quorum.TableKey]
	if e.Value == nil {
		return nil, fmt.Errorf("the member table does not exist")
	}
	return w.memo.parse(e.Value)
}

func (w *world) busy(m *machine, t *quorum.Table) string {
	p := m.proc
	switch {
	case p == nil && (!m.shouldRun || m.departed):
		return ""
	case p == nil:
		return fmt.Sprintf("n%d is not running", m.index)
	case p.view.Epoch() != t.Epoch:
		return fmt.Sprintf("%s is at epoch %d, not %d", p.node, p.view.Epoch(), t.Epoch)
	case p.journal.shipped < len(p.journal.entries):
		return fmt.Sprintf("%s has journal entries that are not shipped", p.node)
	}
	return p.pendingWork()
}

// pendingWork describes a process's unfinished work; "" if there is none.
func (p *process) pendingWork() string {
	switch {
	case p.out.Len() > 0:
		return fmt.Sprintf("%s has %d links for other nodes", p.node, p.out.Len())
	case len(p.visits) > 0:
		return fmt.Sprintf("%s asks %s", p.node, p.visits[0].site().name)
	}
	todo, first := 0, int32(0)
	for n, h := range p.state.hosts {
		if h.waiting != 0 && (todo == 0 || n < first) {
			todo, first = bits.OnesCount64(h.waiting), n
		}
	}
	if todo > 0 {
		return fmt.Sprintf("%s has %d pages of %s to fetch", p.node, todo, p.w.web.hosts[first].name)
	}
	return ""
}

// A problem is a broken invariant of a cluster at rest.
type problem struct {
	host int32
	text string
}

// judge returns the number of invariants that are broken at rest. With report it records them as violations.
func (w *world) judge(report bool) int {
	var found []problem
	if n, one := w.checker.coverage.missing(w.web); n > 0 {
		w.figures.Lost += n
		if !report {
			w.figures.Lost -= n
		}
		found = append(found, problem{one.host(), fmt.Sprintf("%d pages are lost, for example %s", n, w.web.name(one))})
	}
	if !w.finished {
		found = append(found, problem{-1, "no node has reported the end of the crawl"})
	}
	found = w.checkOwners(found)
	if report {
		for _, f := range found {
			w.violateHost(f.host, "%s", f.text)
		}
	}
	return len(found)
}

// maxJudged bounds the pairs of host and node that are checked. Beyond it, only a sample of the hosts is.
const maxJudged = 5_000_000

// checkOwners adds hosts whose owner is disputed, or is not their only holder.
func (w *world) checkOwners(found []problem) []problem {
	holders := make([][]strategy.Node, len(w.web.hosts))
	running := w.processes()
	for _, p := range running {
		for _, n := range p.state.sortedHosts() {
			holders[n] = append(holders[n], p.node)
		}
	}
	for n := range w.web.hosts {
		h := int32(n)
		if w.checker.coverage[n].fetched != 0 && len(holders[n]) != 1 {
			found = append(found, problem{h, fmt.Sprintf("%s is held by %v", w.web.hosts[n].name, holders[n])})
		}
	}
	step := max(1, len(running)*len(w.web.hosts)/maxJudged)
	for n := 0; n < len(w.web.hosts); n += step {
		if what := w.ownerConflict(running, n, holders[n]); what != "" {
			found = append(found, problem{int32(n), what})
		}
	}
	return found
}

// ownerConflict describes a disagreement about a host's owner; "" if there is none.
func (w *world) ownerConflict(running []*process, n int, holders []strategy.Node) string {
	name := w.web.hosts[n].name
	var owner strategy.Node
	for _, p := range running {
		o, state := p.view.Owner(name)
		switch {
		case state == strategy.Unknown && p.strategy != nil:
			continue // it would ask the control unit
		case state == strategy.Unknown:
			return fmt.Sprintf("%s does not know the owner of %s", p.node, name)
		case owner != "" && o != owner:
			return fmt.Sprintf("%s has %s as the owner of %s, others have %s", p.node, o, name, owner)
		case p.view.Ours(name) != (o == p.node):
			return fmt.Sprintf("%s owns %s in the view of %s, but its Ours returns %v", o, name, p.node,
				p.view.Ours(name))
		}
		owner = o
	}
	if len(holders) == 1 && holders[0] != owner {
		return fmt.Sprintf("%s belongs to %s, but %s holds it", name, owner, holders[0])
	}
	return ""
}

// recordExport records the pages that a process is about to hand over.
func (w *world) recordExport(p *process, owner func(string) strategy.Node) {
	handed := w.handedOver[p.node]
	if handed == nil {
		handed = map[int32]uint64{}
		w.handedOver[p.node] = handed
	}
	for n, h := range p.state.hosts {
		if owner(w.web.hosts[n].name) != "" {
			handed[n] |= h.waiting
		}
	}
}

// checkForget reports a violation if a process forgets pages that it has not handed over. It returns the pages handed
// over.
func (w *world) checkForget(p *process, n int32) (handed uint64) {
	handed = w.handedOver[p.node][n]
	if kept := p.state.hosts[n].waiting &^ handed; kept != 0 {
		w.violateHost(n, "%s forgets %d pages of %s without handing them over", p.node, bits.OnesCount64(kept),
			w.web.hosts[n].name)
	}
	delete(w.handedOver[p.node], n)
	return handed
}

// restoreHandedOver restores the record of pages handed over, for forget entries that the node's disk has lost: the
// node holds their hosts again.
func (w *world) restoreHandedOver(n strategy.Node, lost []*entry) {
	for _, e := range lost {
		for i, pages := range e.handedOver {
			if pages != 0 {
				w.handedOver[n][e.hosts[i]] |= pages
			}
		}
	}
}
