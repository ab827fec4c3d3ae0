package natsbus

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// News are what the servers tell a process of writes to the registry. However many watch it there, over a thin line
// each write comes once.
type updates struct {
	mu  sync.Mutex // guards all
	sub *nats.Subscription
	to  map[chan *nats.Msg]struct{}
}

// subscribe has news put into a channel from now on, until stop is called. They are shared with others, and are left out
// while the channel is full.
func (c *Cluster) subscribe(to chan *nats.Msg) (stop func(), err error) {
	n := &c.updates
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sub == nil {
		if n.sub, err = c.conn.Subscribe(c.names.updates(), n.publish); err != nil {
			return nil, err
		}
	}
	if n.to == nil {
		n.to = make(map[chan *nats.Msg]struct{})
	}
	n.to[to] = struct{}{}
	return func() { n.unsubscribe(to) }, nil
}

func (n *updates) publish(m *nats.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for to := range n.to {
		select {
		case to <- m:
		default:
		}
	}
}

func (n *updates) unsubscribe(to chan *nats.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.to, to); len(n.to) == 0 {
		drop(n.sub)
		n.sub = nil
	}
}
