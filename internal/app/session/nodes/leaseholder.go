package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
)

// holdLimit bounds the time for which a lease is held: other nodes must be able to take over the hosts of a node whose
// disk hangs.
const holdLimit = 10 * time.Minute

// holdLease renews the lease of a member that does not run yet, or no longer: while its folder is opened, or closed to
// be opened again, which may take longer than a lease. Otherwise the other nodes would declare it dead, and fetch again
// what it has not uploaded. The caller calls release before the node runs, and before the bus is closed.
func (m *membership) holdLease(ctx context.Context) (release func()) {
	if !m.joined.Load() {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(m.n.Timing.Beat)
		defer tick.Stop()
		for h := (leaseHolder{m: m}); h.renew(ctx); {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// A leaseHolder renews a lease in place of the process that acquired it, as long as no process does so itself.
type leaseHolder struct {
	m        *membership
	instance uint64 // process that acquired the lease; 0: the lease was not read yet
	beat     uint64 // of the last write, or attempt to write
	revision uint64 // of the last lease that this holder read or wrote
	unknown  bool   // the last write may have succeeded
	others   int    // renewals by a process
}

// maxOthers is the number of renewals by a process after which a holder stops. A single one may be the last renewal of
// a process that has ended, or of this process's member.
const maxOthers = 1

// renew reports whether there is a lease that can be renewed again. It keeps the lease's content, with the batch of
// moves that the node may have offered.
func (h *leaseHolder) renew(ctx context.Context) bool {
	m := h.m
	ctx, cancel := context.WithTimeout(ctx, max(m.n.Timing.Beat, time.Second))
	defer cancel()
	key := quorum.LeasePrefix + string(m.id.Node())
	e, err := m.bus.Get(ctx, key)
	if err != nil {
		return true // the servers may be away
	}
	lease, err := quorum.ParseLease(e.Value)
	if e.Value == nil || err != nil || lease.Revoked {
		return false // the node notices when it runs
	}
	if !h.owns(&lease, e.Revision) {
		m.n.Log.Warn("another process renews the lease of this node: does it run in a copy of the folder?", "key", key)
		return false
	}
	lease.Beat++
	var r node.Report
	if json.Unmarshal(lease.Report, &r) == nil {
		r.Clock, r.Rate, r.InFlight, r.Idle = time.Now().UTC(), 0, 0, false
		if report, err := json.Marshal(&r); err == nil {
			lease.Report = report
		}
	}
	h.beat, h.revision = lease.Beat, e.Revision
	revision, err := m.bus.Put(ctx, key, lease.Encode(), e.Revision)
	if err == nil {
		h.revision = revision
	}
	if h.unknown = err != nil && !errors.Is(err, bus.ErrStale); h.unknown {
		m.n.Log.Debug("cannot renew the lease while the folder is opened or closed", "err", err)
	}
	return true
}

// owns reports whether no other process owns or renews the lease that was read.
func (h *leaseHolder) owns(lease *quorum.Lease, revision uint64) bool {
	switch {
	case h.instance == 0:
		h.instance = lease.Instance
	case lease.Instance != h.instance:
		return false
	case revision != h.revision && (!h.unknown || lease.Beat != h.beat):
		h.others++
	}
	return h.others <= maxOthers
}
