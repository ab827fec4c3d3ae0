package quorum

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// A View says whose hosts are, as one node sees it at one moment. It does not change, and may be used by many
// goroutines at once.
type View struct {
	self  strategy.Node
	epoch uint64
	until time.Time
	owner strategy.View // under the epoch
	// under earlier ones, from the last of which this node has all that is its own; nil if it has that of this epoch
	past []strategy.View
	in   bool // the node is a member
}

// Epoch is the epoch that the node knows of; 0 before it knows one.
func (v *View) Epoch() uint64 { return v.epoch }

// Member reports whether the node is a member, as far as it knows.
func (v *View) Member() bool { return v.in }

// Until is when the node's lease ends, unless it is renewed.
func (v *View) Until() time.Time { return v.until }

// Owner says who owns a host: to whom links to it go.
func (v *View) Owner(host string) (strategy.Node, strategy.State) {
	if v.owner == nil {
		return "", strategy.Unknown
	}
	return v.owner.Owner(host)
}

// Ours reports whether this node owns a host and has all that is known of it. It may be parked.
func (v *View) Ours(host string) bool {
	if !v.in || v.owner == nil || !v.owns(v.owner, host) {
		return false
	}
	for _, earlier := range v.past {
		if !v.owns(earlier, host) {
			return false
		}
	}
	return true
}

func (v *View) owns(view strategy.View, host string) bool {
	owner, state := view.Owner(host)
	return state != strategy.Unknown && owner == v.self
}

// May reports whether this node may send a request to a host now.
func (v *View) May(host string, now time.Time) bool {
	if !now.Before(v.until) || !v.Ours(host) {
		return false
	}
	_, state := v.owner.Owner(host)
	return state == strategy.Owned
}
