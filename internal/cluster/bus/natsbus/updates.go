package natsbus

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// updates distributes the writes to the registry that the servers republish. However many watchers a process has, each
// write is sent to it once, which matters on a slow line.
type updates struct {
	mu  sync.Mutex // guards all fields
	sub *nats.Subscription
	to  map[chan *nats.Msg]struct{}
}

// subscribe sends updates to a channel until stop is called. Watchers share the messages and must not change them.
// Updates are dropped while the channel is full.
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
