package hosttable

import (
	"fmt"

	"kumo/internal/cluster/strategy"
)

// nodes assigns small numbers to owners and counts their hosts. The number of a node without hosts is reused.
type nodes struct {
	all    []owner // the first means no owner
	number map[strategy.Node]uint16
	free   []uint16
}

type owner struct {
	name  strategy.Node
	hosts int
}

func newNodes() nodes {
	return nodes{all: make([]owner, 1), number: map[strategy.Node]uint16{"": 0}}
}

func (n *nodes) count(name strategy.Node) int {
	i, known := n.number[name]
	if !known {
		return 0
	}
	return n.all[i].hosts
}

// known returns the number of nodes that have numbers.
func (n *nodes) known() int { return len(n.number) - 1 }

// acquire adds a host to a node's count, and returns the node's number.
func (n *nodes) acquire(name strategy.Node) uint16 { return n.acquireMany(name, 1) }

func (n *nodes) acquireMany(name strategy.Node, hosts int) uint16 {
	i, known := n.number[name]
	if !known {
		i = n.unused()
		n.all[i].name = name
		n.number[name] = i
	}
	n.all[i].hosts += hosts
	return i
}

func (n *nodes) unused() uint16 {
	if last := len(n.free) - 1; last >= 0 {
		i := n.free[last]
		n.free = n.free[:last]
		return i
	}
	if len(n.all) > MaxNodes {
		panic(fmt.Sprintf("more than %d nodes own hosts", MaxNodes))
	}
	n.all = append(n.all, owner{})
	return uint16(len(n.all) - 1)
}

// release subtracts a host from a node's count.
func (n *nodes) release(i uint16) {
	o := &n.all[i]
	if o.hosts--; o.hosts > 0 || i == 0 {
		return
	}
	delete(n.number, o.name)
	o.name = ""
	n.free = append(n.free, i)
}
