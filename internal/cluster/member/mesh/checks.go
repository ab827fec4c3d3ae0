package mesh

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// checks query targets from time to time whether they still have the hosts that were dispatched to them: itemCheck.
//
// Invariant: at most one timer runs for a target, while it is watched for any host.
type checks struct {
	core  *core
	mail  poster
	every time.Duration // Config.CheckEvery
	// returns the handler of a target's reply about a host; the reply is nil if the target has not answered
	replyHandler func(host string, target strategy.Node) func(r *reply)
	target       map[strategy.Node]*check
}

// A check is the state of the checks of one target.
type check struct {
	hosts map[string]bool
	next  string // the next query starts with this host, or the first one after it
	armed bool
	wait  time.Duration // until the next query; it doubles as long as the target has all hosts
}

const (
	maxChecked = 256 // hosts per check
	// a target that has all its hosts is queried less often, at intervals of up to so many times Config.CheckEvery
	maxCheckFactor = 6
)

// watch adds a host to the checks of a target.
func (s *checks) watch(target strategy.Node, host string) {
	c := s.target[target]
	if c == nil {
		c = &check{hosts: map[string]bool{}, wait: s.every}
		s.target[target] = c
	}
	c.hosts[host] = true
	if !c.armed {
		c.armed = true
		s.core.after(c.wait, func() { s.check(target, c) })
	}
}

func (s *checks) unwatch(target strategy.Node, host string) {
	if c := s.target[target]; c != nil {
		delete(c.hosts, host)
	}
}

func (s *checks) watches(target strategy.Node, host string) bool {
	c := s.target[target]
	return c != nil && c.hosts[host]
}

// hosts returns all hosts about which a target is queried, sorted.
func (s *checks) hosts(target strategy.Node) []string {
	if c := s.target[target]; c != nil {
		return sortedKeys(c.hosts)
	}
	return nil
}

// check queries a target about some of its hosts.
func (s *checks) check(target strategy.Node, c *check) {
	c.armed = false
	all := sortedKeys(c.hosts)
	if len(all) == 0 {
		delete(s.target, target)
		return
	}
	at, _ := slices.BinarySearch(all, c.next)
	all = append(all[at:], all[:at]...)
	asked := all[:min(len(all), maxChecked)]
	if c.next = ""; len(asked) < len(all) {
		c.next = all[len(asked)]
	}
	for _, host := range asked {
		judge := s.replyHandler(host, target)
		s.mail.post(target, item{kind: itemCheck, host: host}, func(_ strategy.Node, r *reply) {
			if r == nil || r.code != replyYes {
				c.wait = s.every
			}
			judge(r)
		})
	}
	c.armed = true
	c.wait = min(2*c.wait, maxCheckFactor*s.every)
	s.core.after(c.wait, func() { s.check(target, c) })
}
