package sim

import (
	"fmt"
	"math/bits"

	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// pendingWork says what is still to be done; "" if nothing is.
func (w *world) pendingWork() string {
	t, err := w.table()
	if err != nil {
		return err.Error()
	}
	if t.Finalized != t.Epoch {
		return fmt.Sprintf("epoch %d is not settled", t.Epoch)
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
		return nil, fmt.Errorf("there is no table of members")
	}
	return w.memo.parse(e.Value)
}

func (w *world) busy(m *machine, t *quorum.Table) string {
	p := m.proc
	switch {
	case p == nil && (!m.shouldRun || m.departed):
		return ""
	case p == nil:
		return fmt.Sprintf("n%d does not run", m.index)
	case p.view.Epoch() != t.Epoch:
		return fmt.Sprintf("%s knows of epoch %d, not %d", p.node, p.view.Epoch(), t.Epoch)
	case p.journal.shipped < len(p.journal.entries):
		return fmt.Sprintf("%s has a journal that is not shipped", p.node)
	}
	return p.pendingWork()
}

// pendingWork says what a process has to do; "" if that is nothing.
func (p *process) pendingWork() string {
	switch {
	case p.out.Len() > 0:
		return fmt.Sprintf("%s has %d links for others", p.node, p.out.Len())
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

// A finding is what is not as it must be at rest.
type problem struct {
	host int32
	text string
}

// judge counts what is not as it must be at rest, and with report it notes that as violations.
func (w *world) judge(report bool) int {
	var found []problem
	if n, one := w.checker.coverage.missing(w.web); n > 0 {
		w.figures.Lost += n
		if !report {
			w.figures.Lost -= n
		}
		found = append(found, problem{one.host(), fmt.Sprintf("%d pages are lost, %s for one", n, w.web.name(one))})
	}
	if !w.finished {
		found = append(found, problem{-1, "no node has found that the crawl is done"})
	}
	found = w.checkOwners(found)
	if report {
		for _, f := range found {
			w.violateHost(f.host, "%s", f.text)
		}
	}
	return len(found)
}

// maxJudged is how many hosts times nodes are judged, at most.
const maxJudged = 5_000_000

// checkOwners finds hosts whose owner is not agreed upon, or does not have them, or not alone.
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

// ownerConflict says where nodes do not agree on a host's owner.
func (w *world) ownerConflict(running []*process, n int, holders []strategy.Node) string {
	name := w.web.hosts[n].name
	var owner strategy.Node
	for _, p := range running {
		o, state := p.view.Owner(name)
		switch {
		case state == strategy.Unknown && p.strategy != nil:
			continue // it would ask
		case state == strategy.Unknown:
			return fmt.Sprintf("%s knows no owner of %s", p.node, name)
		case owner != "" && o != owner:
			return fmt.Sprintf("%s holds %s for the owner of %s, others %s", p.node, o, name, owner)
		case p.view.Ours(name) != (o == p.node):
			return fmt.Sprintf("%s is the owner of %s by %s's view, which holds it for its own: %v", o, name, p.node,
				p.view.Ours(name))
		}
		owner = o
	}
	if len(holders) == 1 && holders[0] != owner {
		return fmt.Sprintf("%s is %s's, but %s holds it", name, owner, holders[0])
	}
	return ""
}

// recordExport notes which pages a process is about to hand over.
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

// checkForget judges that a process forgets only what it has handed over, which it returns.
func (w *world) checkForget(p *process, n int32) (handed uint64) {
	handed = w.handedOver[p.node][n]
	if kept := p.state.hosts[n].waiting &^ handed; kept != 0 {
		w.violateHost(n, "%s forgets %d pages of %s that it has handed over to nobody", p.node, bits.OnesCount64(kept),
			w.web.hosts[n].name)
	}
	delete(w.handedOver[p.node], n)
	return handed
}

// restoreHandedOver notes that a node holds again what it has handed over, and forgotten by entries that its disk has lost.
func (w *world) restoreHandedOver(n strategy.Node, lost []*entry) {
	for _, e := range lost {
		for i, pages := range e.handedOver {
			if pages != 0 {
				w.handedOver[n][e.hosts[i]] |= pages
			}
		}
	}
}
