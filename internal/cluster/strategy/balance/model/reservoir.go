package model

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
)

// A record is a sample in the reservoir.
type record struct {
	Sample
	Number uint64 `json:"number"`         // number of samples added so far
	Held   bool   `json:"held,omitempty"` // held back from training
}

const (
	minPerNode   = 8 // samples per node that are always allowed
	holdOutEvery = 5 // on average one sample in holdOutEvery is held back
)

// A reservoir stores a bounded number of samples, with the same share for each node. A new sample is always stored, and
// replaces a random one of the same node. So old samples become rare, and no node loses all of its samples.
type reservoir struct {
	limit int
	seed  uint64
	count uint64              // samples added so far
	nodes map[string][]record // in the order of addition
}

func newReservoir(limit int, seed uint64) reservoir {
	return reservoir{limit: max(limit, minPerNode), seed: seed, nodes: map[string][]record{}}
}

// add adds a sample, and reports whether samples of other nodes were removed.
func (r *reservoir) add(s Sample) (others bool) {
	r.count++
	rng := rand.New(rand.NewPCG(r.seed, r.count))
	before := r.nodes[s.Node]
	held := len(before) > 0 && rng.IntN(holdOutEvery) == 0
	r.nodes[s.Node] = append(before, record{s, r.count, held})
	if len(before) == 0 {
		return r.shrink(rng)
	}
	r.nodes[s.Node] = thin(r.nodes[s.Node], r.share(), rng)
	return false
}

// shrink removes excess samples: if there are too many nodes, all samples of those that were silent for longest, then
// each node's samples beyond its share.
func (r *reservoir) shrink(rng *rand.Rand) (removed bool) {
	for len(r.nodes)*minPerNode > r.limit {
		delete(r.nodes, r.longestSilent())
		removed = true
	}
	for _, node := range r.names() {
		before := len(r.nodes[node])
		r.nodes[node] = thin(r.nodes[node], r.share(), rng)
		removed = removed || len(r.nodes[node]) < before
	}
	return removed
}

// share returns the number of samples that a node may have.
func (r *reservoir) share() int { return max(r.limit/len(r.nodes), minPerNode) }

// thin removes random samples beyond the share, but never the newest. It removes held-back ones if these exceed their
// part, else others.
func thin(of []record, share int, rng *rand.Rand) []record {
	for len(of) > share {
		held := 0
		for _, rec := range of {
			if rec.Held {
				held++
			}
		}
		excess := held > share/holdOutEvery
		at := rng.IntN(len(of) - 1)
		for of[at].Held != excess {
			at = (at + 1) % (len(of) - 1)
		}
		of = slices.Delete(of, at, at+1)
	}
	return of
}

func (r *reservoir) longestSilent() string {
	return slices.MinFunc(r.names(), func(a, b string) int {
		return cmp.Compare(r.nodes[a][len(r.nodes[a])-1].Number, r.nodes[b][len(r.nodes[b])-1].Number)
	})
}

func (r *reservoir) names() []string { return slices.Sorted(maps.Keys(r.nodes)) }

// records returns all records in the order of addition.
func (r *reservoir) records() (all []record) {
	for _, of := range r.nodes {
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// training returns the training samples in the order of addition.
func (r *reservoir) training() (samples []Sample) {
	for _, rec := range r.records() {
		if !rec.Held {
			samples = append(samples, rec.Sample)
		}
	}
	return samples
}
