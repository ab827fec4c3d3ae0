package node_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/lab/testmain"
)

// Nodes die, return, get disconnected, leave and join, while messages are lost and results of writes are unknown. Every
// page is fetched, and none twice.
func TestNodesComeAndGo(t *testing.T) {
	for seed, end := testmain.Seeds(2, 8); seed < end; seed++ {
		synctest.Test(t, func(t *testing.T) { comeAndGo(t, seed) })
	}
}

// A drama is a series of incidents of some nodes.
type drama struct {
	*world
	dice  *rand.Rand
	nodes []*testNode
	lives int
}

func comeAndGo(t *testing.T, seed uint64) {
	w := newWorld(t, 120, 80)
	w.hub.SetFaults(inproc.Faults{Drop: 0.03, Duplicate: 0.03, Delayed: 0.1, Delay: 300 * time.Millisecond,
		Uncertain: 0.03})
	d := &drama{world: w, dice: rand.New(rand.NewPCG(seed, 7))}
	for range 4 {
		d.join()
	}
	d.eventuallyIn()
	must(t, w.control.Start(t.Context(), nil, w.seeds(4)))
	for w.count() < w.hosts*w.pages*9/10 {
		d.act()
		time.Sleep(time.Duration(d.dice.IntN(12_000)) * time.Millisecond)
		d.replace()
	}
	for _, x := range d.nodes {
		w.hub.Partition(x.id.Node(), false)
	}
	d.rest()
	if r, _, err := w.control.Record(t.Context()); err != nil || r.State != desired.Done {
		t.Errorf("seed %d: the record says %+v (%v)", seed, r, err)
	}
	w.check(1)
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

func (d *drama) join() {
	d.lives++
	d.nodes = append(d.nodes, d.start(fmt.Sprint("n", d.lives), "1"))
}

// eventuallyIn waits until there is a member.
func (d *drama) eventuallyIn() {
	eventually(d.t, "there is a table", func() bool {
		e, err := d.control.Registry.Get(d.t.Context(), quorum.TableKey)
		return err == nil && e.Value != nil
	})
}

// act causes an incident of one node.
func (d *drama) act() {
	i := d.dice.IntN(len(d.nodes))
	x := d.nodes[i]
	switch d.dice.IntN(6) {
	case 0: // dies for good
		x.crash()
		d.nodes = append(d.nodes[:i], d.nodes[i+1:]...)
		d.join()
	case 1, 2: // dies and returns
		x.crash()
		time.Sleep(time.Duration(d.dice.IntN(20_000)) * time.Millisecond)
		d.nodes[i] = d.start(x.id.Name, x.id.Incarnation)
	case 3: // is disconnected for a while
		d.hub.Partition(x.id.Node(), true)
		time.Sleep(time.Duration(d.dice.IntN(25_000)) * time.Millisecond)
		d.hub.Partition(x.id.Node(), false)
	case 4:
		x.n.Leave()
		d.join()
	case 5: // reaches other nodes, but not the registry
		d.hub.DenyRegistry(x.id.Node(), true)
		time.Sleep(time.Duration(d.dice.IntN(25_000)) * time.Millisecond)
		d.hub.DenyRegistry(x.id.Node(), false)
	}
}

// replace starts new nodes for those that have ended.
func (d *drama) replace() {
	for i := 0; i < len(d.nodes); i++ {
		select {
		case err := <-d.nodes[i].ended:
			if !errors.Is(err, node.ErrLost) && !errors.Is(err, errSealed) && !errors.Is(err, node.ErrLeft) && err != nil {
				d.t.Errorf("%s ended with %v", d.nodes[i].id.Node(), err)
			}
			d.nodes = append(d.nodes[:i], d.nodes[i+1:]...)
			i--
			if err != nil {
				d.join()
			}
		default:
		}
	}
}

// rest waits until all have ended.
func (d *drama) rest() {
	eventually(d.t, "all have ended", func() bool {
		d.replace()
		return len(d.nodes) == 0
	})
}
