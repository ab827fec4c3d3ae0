package mesh

import "kumo/internal/cluster/strategy"

// transfers send this node's history of a host to other nodes: a piece at a time, as an itemStore for each node. A node
// that does not store a piece receives no more.
type transfers struct {
	mail     poster
	history  store
	mayLearn func(strategy.Node) bool        // whether a node may learn that URLs are done
	target   func(host string) strategy.Node // the node that fetches a host, as far as it is known
}

// sendAll sends a host's whole history to some nodes. It calls over with those that have stored all of it.
func (s *transfers) sendAll(host string, to []strategy.Node, over func(stored []strategy.Node)) {
	s.send(host, "", true, to, over)
}

// sendOpen does so with the open URLs.
func (s *transfers) sendOpen(host string, to []strategy.Node, over func(stored []strategy.Node)) {
	s.send(host, "", false, to, over)
}

func (s *transfers) send(host, from string, all bool, to []strategy.Node, over func(stored []strategy.Node)) {
	if all {
		to = s.allowed(to)
	}
	if len(to) == 0 {
		over(nil)
		return
	}
	s.history.read(host, from, all, func(k Known) {
		it := item{kind: itemStore, host: host, links: k.Links, node: s.target(host)}
		if all {
			it.number = itemGiven
		}
		s.sendPiece(it, to, func(stored []strategy.Node) {
			if k.Next == "" {
				over(stored)
			} else {
				s.send(host, k.Next, all, stored, over)
			}
		})
	})
}

// allowed returns the nodes that may learn which URLs are done.
func (s *transfers) allowed(nodes []strategy.Node) (some []strategy.Node) {
	for _, n := range nodes {
		if s.mayLearn(n) {
			some = append(some, n)
		}
	}
	return some
}

func (s *transfers) sendPiece(it item, to []strategy.Node, over func(stored []strategy.Node)) {
	if len(it.links) == 0 {
		over(to)
		return
	}
	left := len(to)
	var stored []strategy.Node
	for _, n := range to {
		s.mail.post(n, it, func(_ strategy.Node, r *reply) {
			if r != nil && r.code == replyYes {
				stored = append(stored, n)
			}
			if left--; left == 0 {
				over(stored)
			}
		})
	}
}
