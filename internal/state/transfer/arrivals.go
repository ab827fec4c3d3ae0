package transfer

import (
	"slices"
	"sync"

	"kumo/internal/cluster/member"
)

// Arrivals are the transfers that are not settled, and the hosts that have come with them.
type arrivals struct {
	hash func(host string) uint64

	mu sync.Mutex // guards what follows
	// changes within the ledger's gate, and with Endpoint.one held, but for hosts that become kept
	Unsettled       Unsettled
	hostsByTransfer map[member.Transfer]map[uint64]bool // hosts, and whether they are kept
	keptVersion     int                                 // how often hosts have become kept since they came
}

// Arrived are the transfers that came whole since an epoch was settled.
func (a *arrivals) Arrived() []member.Transfer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.Unsettled.Whole)
}

// Partial are the transfers of which something has come, and that have not come whole.
func (a *arrivals) Partial() []member.Transfer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Unsettled.Partial()
}

// NoteUnsettled are the transfers that are not settled, for a checkpoint's note; nil if there are none.
func (a *arrivals) NoteUnsettled() *Unsettled {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.Unsettled.Coming)+len(a.Unsettled.Whole)+len(a.Unsettled.Went) == 0 {
		return nil
	}
	all := a.Unsettled.Clone()
	return &all
}

func (a *arrivals) expects(t member.Transfer, seq uint64) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Unsettled.expects(t, seq)
}

func (a *arrivals) keeps(t member.Transfer, more []string) (all []string, finds int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Unsettled.KeptHosts(t, more), a.keptVersion
}

func (a *arrivals) droppedHosts(t member.Transfer) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Unsettled.DroppedHosts(t)
}

// without are the transfers under way without some hosts, but for those that are kept, and up to which find.
func (a *arrivals) without(hosts []string) (gone []string, coming []Incoming, finds int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gone = a.Unsettled.notKept(hosts)
	return gone, a.Unsettled.Without(gone), a.keptVersion
}

// hostsOf are the hosts that have come with a transfer, which may have begun in an earlier life, and whether they are
// kept. mu is held.
func (a *arrivals) hostsOf(t member.Transfer) map[uint64]bool {
	if all := a.hostsByTransfer[t]; all != nil {
		return all
	}
	all := map[uint64]bool{}
	a.hostsByTransfer[t] = all
	if i := a.Unsettled.find(t); i >= 0 {
		for host := range a.Unsettled.Coming[i].each {
			all[a.hash(host)] = false
		}
		for _, host := range a.Unsettled.Coming[i].Kept {
			all[a.hash(host)] = true
		}
	}
	return all
}

// meet notes for good which hosts have come with a transfer, and whether they are kept.
func (a *arrivals) recordHosts(t member.Transfer, p *Chunk, kept []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	came := a.hostsOf(t)
	p.hosts(func(host string) {
		k := a.hash(host)
		if _, met := came[k]; !met {
			came[k] = isIn(kept, host)
		}
	})
}

// wouldBeDropped reports whether a host has come with a transfer under way, and goes if that is dropped. mu is held.
func (a *arrivals) wouldBeDropped(host string) bool {
	if len(a.hostsByTransfer) == 0 {
		return false
	}
	k := a.hash(host)
	for _, came := range a.hostsByTransfer {
		if keeps, met := came[k]; met && !keeps {
			return true
		}
	}
	return false
}

// setKept says of hosts that came with transfers under way that they are kept from now on, or not any more. mu is held.
func (a *arrivals) setKept(hosts []string, keeps bool, all ...member.Transfer) {
	for _, t := range all {
		for _, host := range hosts {
			k := a.hash(host)
			if _, met := a.hostsByTransfer[t][k]; met {
				a.hostsByTransfer[t][k] = keeps
			}
		}
	}
}
