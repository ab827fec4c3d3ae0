package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"kumo/internal/netlab"
)

// carryOut does a fault when its time comes, unless the crawl is over before, and undoes it.
func (r *round) carryOut(f *fault, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-time.After(time.Until(r.began.Add(f.after))):
	}
	f.began = time.Now()
	n := r.nodes[f.node]
	if err := r.harm(f, n); err != nil {
		r.trouble <- fmt.Errorf("%v: %w", f, err)
		return
	}
	if f.lasts > 0 {
		select {
		case <-over:
			if f.kind == kill || f.kind == replace {
				return
			}
		case <-time.After(f.lasts):
		}
	}
	f.back = time.Now()
	if err := r.heal(f, n); err != nil {
		r.trouble <- fmt.Errorf("end %v: %w", f, err)
	}
}

func (r *round) harm(f *fault, n *clusterNode) error {
	switch f.kind {
	case kill:
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
		return n.life.Signal(syscall.SIGINT) // lookAfter sees how it ends
	case replace:
		if err := n.end(); err != nil {
			return err
		}
		n.lost = append(n.lost, fmt.Sprintf("%s-lost%d", n.dir, n.lives))
		return os.Rename(n.dir, n.lost[len(n.lost)-1])
	}
	return fmt.Errorf("there is no fault %q", f.kind)
}

func (r *round) heal(f *fault, n *clusterNode) error {
	switch f.kind {
	case kill, replace:
		return r.start(n)
	case pause:
		return n.life.Signal(syscall.SIGCONT)
	case partition:
		return r.lab.Heal()
	}
	return nil
}

// end ends a node's process without warning.
func (n *clusterNode) end() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.life
	n.life = nil // its end is no surprise
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.Done()
	return nil
}

// sides are the hosts that are cut off, and all others but the web.
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
