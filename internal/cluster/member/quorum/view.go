package quorum

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A View contains the owners of hosts as one node knows them at one moment. It is immutable and safe for concurrent
// use.
type View struct {
	self  strategy.Node
	epoch uint64
	until time.Time
	owner strategy.View // under the epoch
	// past are the owners under earlier epochs, starting with the last epoch whose hosts this node has received
	// completely; nil if that is the current epoch.
	past []strategy.View
	in   bool // the node is a member
}

// Epoch returns the last epoch that the node has seen; 0 before it has seen one.
func (v *View) Epoch() uint64 { return v.epoch }

// IsMember reports whether the node was a member when the view was made.
func (v *View) IsMember() bool { return v.in }

// Until returns the end of the node's lease, unless it is renewed.
func (v *View) Until() time.Time { return v.until }

// Owner returns a host's owner: the node to which links to it go.
func (v *View) Owner(host string) (strategy.Node, strategy.State) {
	if v.owner == nil {
		return "", strategy.Unknown
	}
	return v.owner.Owner(host)
}

// Ours reports whether this node owns a host and holds its whole state. The host may be parked.
func (v *View) Ours(host string) bool {
	lacks := func(view strategy.View) bool { return !v.owns(view, host) }
	return v.in && v.owner != nil && v.owns(v.owner, host) && !slices.ContainsFunc(v.past, lacks)
}

func (v *View) owns(view strategy.View, host string) bool {
	owner, state := view.Owner(host)
	return state != strategy.Unknown && owner == v.self
}

// MayFetch reports whether this node may send a request to a host now.
func (v *View) MayFetch(host string, now time.Time) bool {
	if !now.Before(v.until) || !v.Ours(host) {
		return false
	}
	_, state := v.owner.Owner(host)
	return state == strategy.Owned
}
