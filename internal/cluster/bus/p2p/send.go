package p2p

import (
	"context"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

const (
	maxDials   = 32  // dials in progress
	maxWaiting = 512 // nodes that have queued messages and are not connected
)

// Send queues a message to a node. The node is connected if it is not, and its address is known.
func (m *Messenger) Send(to strategy.Node, data []byte) error {
	if err := bus.CheckMessage(to, data); err != nil {
		return err
	}
	for {
		p, err := m.receiver(to)
		if err != nil {
			return err
		}
		if p == nil {
			m.counts.unreachable.Add(1)
			return nil
		}
		if p.push(data) {
			return nil
		}
	}
}

// receiver returns the remote of a node, and adds one if necessary; nil if there is no room or the node is invalid.
func (m *Messenger) receiver(node strategy.Node) (*remote, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.work.isClosed() {
		return nil, bus.ErrClosed
	}
	if p := m.peers[node]; p != nil {
		return p, nil
	}
	id, err := idOf(node)
	if err != nil || len(m.peers) >= m.cfg.Limits.Peers+maxWaiting {
		return nil, nil
	}
	return m.addRemote(node, id), nil
}

// push queues a message; false if the remote was removed.
func (p *remote) push(data []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed {
		return false
	}
	p.of.counts.sent.Add(1)
	p.of.counts.overflow.Add(int64(p.out.add(data)))
	if !p.writing && p.out.count > 0 {
		p.writing = p.of.work.Go(p.sendLoop)
	}
	return true
}

func (p *remote) sendLoop() {
	for {
		frames, n := p.next()
		if n == 0 {
			return
		}
		if err := p.deliver(frames, n); err != nil {
			p.of.counts.unreachable.Add(int64(n))
			p.dropQueued()
		}
	}
}

// next takes all queued frames. Without any, sendLoop ends.
func (p *remote) next() (frames []byte, n int) {
	p.mu.Lock()
	frames, n = p.out.dequeue()
	p.writing = n > 0
	p.mu.Unlock()
	if n == 0 {
		p.of.forget(p)
	}
	return frames, n
}

// deliver sends frames to the node, over a link that exists or is made. It returns an error if there is no link. Frames
// of a link that breaks are lost without an error.
func (p *remote) deliver(frames []byte, n int) error {
	if p.node == p.of.node {
		if !p.of.handOff(delivery{from: p.node, frames: frames, n: n, done: make(chan struct{}, 1)}) {
			return bus.ErrClosed
		}
		return nil
	}
	l := p.link()
	if l == nil {
		ctx, cancel := context.WithTimeout(p.of.work.ctx, dialTime)
		defer cancel()
		var err error
		if l, err = p.connect(ctx); err != nil {
			return err
		}
	}
	if err := l.write(frames); err != nil {
		p.of.counts.broken.Add(int64(n))
		l.close(err)
	}
	return nil
}

func (p *remote) dropQueued() {
	p.mu.Lock()
	_, n := p.out.dequeue()
	p.mu.Unlock()
	p.of.counts.unreachable.Add(int64(n))
	if !p.of.work.isClosed() {
		p.of.notices.add(p.node, false)
	}
}

// A delivery is frames received from a node. After done their memory is reused.
type delivery struct {
	from   strategy.Node
	frames []byte
	n      int
	done   chan struct{} // has room for one element
}

// handOff waits until frames were processed; false if the messenger is closed: then they may still be in use.
func (m *Messenger) handOff(d delivery) bool {
	select {
	case m.inbox <- d:
	case <-m.work.ctx.Done():
		return false
	}
	select {
	case <-d.done:
		return true
	case <-m.work.ctx.Done():
		return false
	}
}

// Receive calls f with each message to this node. Nodes take turns; while f is busy nothing is read from them.
func (m *Messenger) Receive(ctx context.Context, f func(from strategy.Node, data []byte)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.work.ctx.Done():
			return bus.ErrClosed
		case d := <-m.inbox:
			eachFrame(d.frames, func(data []byte) {
				if ctx.Err() == nil {
					f(d.from, data)
				}
			})
			m.counts.received.Add(int64(d.n))
			d.done <- struct{}{}
		}
	}
}

func (m *Messenger) throttle(wait time.Duration) {
	if wait <= 0 {
		return
	}
	m.counts.slowed.Add(1)
	select {
	case <-time.After(wait):
	case <-m.work.ctx.Done():
	}
}
