package mesh

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// recalls have a host's target drop its queue, at the first backup of the host.
//
// When a partition of the network heals, the target has URLs in its queue that were fetched in the other part. A target
// that has just joined may have some that the previous target has fetched and had not reported yet. The backups merge
// their histories, and the first of them notices the difference: then it recalls the queue (itemRecall). The target
// releases the host, as if it were another node's, and receives the URLs that are still open.
type recalls struct {
	core    *core
	place   *place
	mail    poster
	lookups finder
	pending map[string]bool
}

// recallAfter leaves other backups time to transfer their histories, too.
const recallAfter = time.Second

// differs recalls the queue of a host if another node has other URLs as done than this one had before.
func (c *recalls) differs(it item, before []State) {
	if c.pending[it.host] || !c.place.isFirst(it.host) {
		return
	}
	for i, s := range before {
		if s != Unknown && s != it.links[i].State && (s != Done || it.links[i].State != Scheduled) {
			c.pending[it.host] = true
			c.core.after(recallAfter, func() { c.recall(it.host) })
			return
		}
	}
}

func (c *recalls) recall(host string) {
	delete(c.pending, host)
	if !c.place.isFirst(host) {
		return
	}
	c.lookups.find(c.place.targetID(host), false, func(nodes []strategy.Node) {
		if len(nodes) == 0 {
			return
		}
		it := item{kind: itemRecall, host: host}
		c.mail.post(nodes[0], it, func(_ strategy.Node, r *reply) {
			if r != nil && r.code == replyMoved {
				c.mail.post(r.node, it, func(strategy.Node, *reply) {})
			}
		})
	})
}
