package transfer

import (
	"slices"
	"sync"

	"kumo/internal/cluster/member"
)

// arrivals contains the unsettled transfers and their hosts.
type arrivals struct {
	hash func(host string) uint64

	mu sync.Mutex // guards all below
	// Unsettled changes within the ledger's gate and with Endpoint.opMu held, except for hosts that become kept.
	Unsettled       Unsettled
	hostsByTransfer map[member.Transfer]map[uint64]bool // hash of each host, and whether it is kept
	keptVersion     int                                 // number of times that received hosts have become kept
}

// Arrived returns the transfers that were completely received since the last settled epoch.
func (a *arrivals) Arrived() []member.Transfer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.Unsettled.Whole)
}

// Partial returns the transfers that were received only in part.
func (a *arrivals) Partial() []member.Transfer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Unsettled.Partial()
}

// NoteUnsettled returns the unsettled transfers for a checkpoint's note, nil if there are none.
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

// without returns the incoming transfers without some hosts. It also returns which of these hosts no transfer keeps, as
// only these are removed, and the current keptVersion.
func (a *arrivals) without(hosts []string) (gone []string, coming []Incoming, finds int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gone = a.Unsettled.notKept(hosts)
	return gone, a.Unsettled.Without(gone), a.keptVersion
}

// hostsOf returns the hosts received with a transfer, possibly by an earlier process, and whether they are kept. The
// caller holds mu.
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

// recordHosts records the hosts received with a transfer, and whether they are kept. It does not change hosts that are
// already recorded.
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

// wouldBeDropped reports whether a host was received with a transfer and would be removed if that is dropped. The
// caller holds mu.
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

// setKept sets whether hosts received with some transfers are kept. The caller holds mu.
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
