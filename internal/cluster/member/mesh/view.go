package mesh

import (
	"maps"
	"time"

	"kumo/internal/base/xor"
)

// A View says whose hosts are, as one node sees it at one moment. It does not change, and may be used by many
// goroutines at once.
type View struct {
	until  time.Time // when it ends to hold
	id     xor.ID
	width  int
	others xor.ID          // bits in which some live nodes differ first from this one
	in     map[string]bool // hosts of others that were given to this node
	out    map[string]bool // hosts of this node's that it has given away, or is about to
}

// Until is when the view ends to hold: then nothing is this node's.
func (v *View) Until() time.Time { return v.until }

// Ours reports whether this node is the one to fetch a host, as long as the view holds.
func (v *View) Ours(host string) bool {
	if v.out[host] {
		return false
	}
	id := xor.Of("target", host).Truncate(v.width)
	return v.id.Distance(id).And(v.others) == xor.ID{} || v.in[host]
}

// publish makes a view of what is known now.
func (m *Machine) publish() {
	m.occupied = m.occupants()
	v := &View{until: m.fresh, id: m.id, width: m.cfg.Width, others: m.occupied}
	if m.view != nil {
		v.in, v.out = m.view.in, m.view.out
	}
	m.show(v)
}

func (m *Machine) show(v *View) {
	m.view = v
	m.do(Publish{View: v})
}

// change publishes a view with a host more or less in one of its sets.
func (m *Machine) change(set func(v *View) *map[string]bool, host string, is bool) {
	v := *m.view
	s := set(&v)
	if (*s)[host] == is {
		return
	}
	if *s = maps.Clone(*s); *s == nil {
		*s = map[string]bool{}
	}
	if is {
		(*s)[host] = true
	} else {
		delete(*s, host)
	}
	m.show(&v)
}
