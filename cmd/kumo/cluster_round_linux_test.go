package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
	"kumo/internal/lab/synthweb"
)

const (
	clusterDelay = 300 * time.Millisecond // between requests to a host
	clusterHosts = 40
	clusterPages = 120 // of a host: the time that a crawl takes without faults follows
	roundMost    = 3 * time.Minute
	// extra time without servers: a node that returns when no other is left waits for absent nodes before it continues
	absentMost = time.Minute
)

// A round is one crawl.
type round struct {
	*labCluster
	seed    uint64
	dice    *rand.Rand
	network string // in words
	paths   map[[2]*netlab.Host]netlab.Path
	faults  []*fault
	trouble chan error // errors of faults that could not be carried out
}

func newRound(t *testing.T, seed uint64) *round {
	strategy := strategyOf("KUMO_TEST_STRATEGY", "shard")
	r := &round{seed: seed, dice: rand.New(rand.NewPCG(seed, 3)), faults: planFaults(seed, serversWith(strategy)),
		trouble: make(chan error, 10)}
	r.paths = make(map[[2]*netlab.Host]netlab.Path)
	n := clusterNodes
	for _, f := range r.faults {
		n = max(n, f.node+1)
	}
	r.labCluster = newLabCluster(t, strconv.FormatUint(seed, 10), seed, strategy, clusterNodes, n)
	r.flags = []string{"--concurrency", "16"}
	for _, f := range r.faults {
		r.affect(f)
	}
	r.serve(synthweb.Clean(seed, clusterHosts, clusterHosts*clusterPages))
	r.connect()
	return r
}

// affect records which nodes lose their membership by a fault, or may.
func (r *round) affect(f *fault) {
	// most servers are cut off, so the others lose their membership
	others := f.with >= 0 && f.with < serversWith(r.strategy)
	for i, n := range r.nodes {
		if f.kind == loss || (i == f.node || i == f.with) != others {
			f.clients = append(f.clients, n.host.Addr().String())
		}
	}
}

// connect sets up the network between the nodes by the seed: close to each other, or at a distance over lines that lose
// some packets.
func (r *round) connect() {
	bits := pick(r.dice, 50, 100, 1000) * 1_000_000
	far := r.dice.IntN(2) == 0
	r.network = fmt.Sprintf("%d Mbit/s", bits/1_000_000)
	if far {
		r.network += ", 1 to 8 ms one way and as much jitter, 0.2 % loss"
	}
	for _, a := range r.nodes {
		if err := a.host.Bandwidth(bits); err != nil {
			r.Fatal(err)
		}
		for _, b := range r.nodes {
			path := netlab.Path{Delay: time.Duration(1+r.dice.IntN(8)) * time.Millisecond, Loss: 0.002}
			path.Jitter = path.Delay
			if far && a != b {
				r.paths[[2]*netlab.Host{a.host, b.host}] = path
				if err := r.lab.SetPath(a.host, b.host, path); err != nil {
					r.Fatal(err)
				}
			}
		}
	}
}

// crawl runs the crawl and its faults.
func (r *round) crawl() {
	r.Helper()
	r.begin(clusterDelay)
	r.settle(time.Minute)
	r.began = time.Now()
	over := make(chan struct{})
	var faults sync.WaitGroup
	for _, f := range r.faults {
		faults.Go(func() { r.carryOut(f, over) })
	}
	done := r.await()
	close(over)
	faults.Wait()
	if done && r.strategy == "mesh" {
		done = r.await() // nodes that returned when no other was left end by themselves, too
	}
	r.stop(done)
}

// await waits until the crawl is done, or until its time is over.
func (r *round) await() (done bool) {
	limit := roundMost
	if r.strategy == "mesh" {
		limit += absentMost
	}
	most := time.After(limit)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-r.trouble:
			r.Error(err)
			return false
		case <-most:
			r.Errorf("the crawl is not done after %v", limit)
			return false
		case <-look.C:
			switch running := r.lookAfter(); {
			case len(running) == 0: // nodes end when the crawl is done
				return true
			case r.ended.IsZero() || time.Since(r.ended) < straggling:
			case r.strategy != "mesh" && r.allHarmed(running):
				r.Logf("%d nodes that were away when the crawl was done wait for the others", len(running))
				return true
			}
		}
	}
}

const straggling = 20 * time.Second // how long after the others a node may end

// allHarmed reports whether all running nodes were paused or cut off, or may have lost messages for too long. Once the
// others have ended, nobody can report to them that the crawl is done.
func (r *round) allHarmed(running []*clusterNode) bool {
	for _, n := range running {
		if !slices.ContainsFunc(r.faults, func(f *fault) bool {
			return (f.kind == pause || f.kind == partition || f.kind == loss) && slices.Contains(f.clients,
				n.host.Addr().String())
		}) {
			return false
		}
	}
	return true
}
