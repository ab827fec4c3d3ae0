package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"kumo/internal/lab/netlab"
)

// carryOut causes a fault when its time comes, unless the crawl is over before, and ends it.
func (r *round) carryOut(f *fault, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-time.After(time.Until(r.began.Add(f.after))):
	}
	if f.kind == control && !r.findControl(f) {
		return
	}
	f.began = time.Now()
	if err := r.harm(f); err != nil {
		r.trouble <- fmt.Errorf("%v: %w", f, err)
		return
	}
	if f.lasts > 0 {
		select {
		case <-over:
			if (f.kind == kill || f.kind == replace || f.kind == control) && r.strategy != "mesh" {
				return
			}
		case <-time.After(f.lasts):
		}
	}
	f.back = time.Now()
	if err := r.heal(f); err != nil {
		r.trouble <- fmt.Errorf("end %v: %w", f, err)
	}
}

// findControl makes the control unit the fault's node. It reports false if no node is the control unit, or if it is
// down already.
func (r *round) findControl(f *fault) bool {
	is, err := r.status()
	i := slices.IndexFunc(r.nodes, func(n *clusterNode) bool { return err == nil && n.name == is.control() })
	if i < 0 || slices.ContainsFunc(r.faults, func(o *fault) bool { return o.node == i || o.with == i }) {
		return false
	}
	f.node = i
	r.affect(f)
	return true
}

// During a fault of kind loss, this share of packets is lost, for this long.
const (
	manyLost    = 0.3
	manyLostFor = 20 * time.Second
)

// lose changes the share of packets lost between nodes; 0 restores the original share.
func (r *round) lose(share float64) error {
	for _, a := range r.nodes {
		for _, b := range r.nodes {
			if a == b {
				continue
			}
			path := r.paths[[2]*netlab.Host{a.host, b.host}]
			path.Loss = max(path.Loss, share)
			if err := r.lab.SetPath(a.host, b.host, path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *round) harm(f *fault) error {
	if f.kind == loss {
		return r.lose(manyLost)
	}
	n := r.nodes[f.node]
	switch f.kind {
	case kill, control:
		return n.end()
	case pause:
		return n.life.Signal(syscall.SIGSTOP)
	case partition:
		return r.lab.Cut(r.sides(f))
	case join:
		return r.start(n)
	case leave:
		n.mu.Lock()
		defer n.mu.Unlock()
		n.leaving = true // lookAfter sees how it ends
		return n.life.Signal(syscall.SIGINT)
	case replace:
		if err := n.end(); err != nil {
			return err
		}
		n.lost = append(n.lost, fmt.Sprintf("%s-lost%d", n.dir, n.lives))
		return os.Rename(n.dir, n.lost[len(n.lost)-1])
	}
	return fmt.Errorf("there is no fault %q", f.kind)
}

func (r *round) heal(f *fault) error {
	if f.kind == loss {
		return r.lose(0)
	}
	n := r.nodes[f.node]
	switch f.kind {
	case kill, replace, control:
		return r.start(n)
	case pause:
		return n.life.Signal(syscall.SIGCONT)
	case partition:
		return r.lab.Heal()
	}
	return nil
}

// sides returns the hosts that are cut off, and all others but the web.
func (r *round) sides(f *fault) (off, rest []*netlab.Host) {
	for i, n := range r.nodes {
		if i == f.node || i == f.with {
			off = append(off, n.host)
		} else {
			rest = append(rest, n.host)
		}
	}
	return off, append(rest, r.desk)
}
