package meshnode

import (
	"context"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
)

// Links that are dispatched to this node are given to the engine by a few goroutines: each batch waits until it is
// durable, and batches that wait together share a commit.
const (
	mostTaking = 32   // batches at once
	mostTakes  = 1024 // that wait beside them; more are refused, and come again
)

type takes struct {
	waiting []mesh.Take
	running int
}

// take has links given to the engine.
func (n *Node) take(a mesh.Take) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &n.takes
	switch {
	case n.engine() == nil || len(t.waiting) >= mostTakes:
		n.events = append(n.events, mesh.Taken{ID: a.ID, Refused: true})
		word(n.came)
	case t.running < mostTaking:
		t.running++
		n.run("take links", func(ctx context.Context) error { n.takeAll(ctx, a); return nil })
	default:
		t.waiting = append(t.waiting, a)
	}
}

// takeAll gives the engine links, and then those that wait.
func (n *Node) takeAll(ctx context.Context, a mesh.Take) {
	for {
		n.takeDispatched(ctx, a)
		n.mu.Lock()
		if len(n.takes.waiting) == 0 {
			n.takes.running--
			n.mu.Unlock()
			return
		}
		a = n.takes.waiting[0]
		n.takes.waiting = n.takes.waiting[1:]
		n.mu.Unlock()
	}
}

func (n *Node) takeDispatched(ctx context.Context, a mesh.Take) {
	data := []byte{member.LinksVersion}
	for _, k := range a.Links {
		data = member.AppendLink(data, k.Item)
	}
	e := n.engine()
	if a.Timing != (mesh.Timing{}) {
		e.Owe(a.Host, a.Timing.Asked, a.Timing.Wait)
	}
	done, err := e.TakeDispatched(ctx, data)
	if err == nil {
		err = n.doneBefore(ctx, data, done)
	}
	if err != nil && ctx.Err() == nil {
		n.log.Debug("links are not taken for now", "host", a.Host, "err", err)
	}
	n.tell(mesh.Taken{ID: a.ID, Done: done, Refused: err != nil})
}
