package model

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
)

// A record is a sample that is kept.
type record struct {
	Sample
	Number uint64 `json:"number"`         // how many samples had come with it
	Held   bool   `json:"held,omitempty"` // back from training
}

const (
	minPerNode   = 8 // samples that each node may have, however many nodes there are
	holdOutEvery = 5 // one of so many samples is held back
)

// A reservoir keeps a bounded number of samples, and as many of each node. What comes is kept; what goes for it is
// drawn from the same node's others. So of an old sample less and less is left, and of no node nothing.
type reservoir struct {
	limit int
	seed  uint64
	count uint64              // samples that came
	nodes map[string][]record // in the order in which they came
}

func newReservoir(limit int, seed uint64) reservoir {
	return reservoir{limit: max(limit, minPerNode), seed: seed, nodes: map[string][]record{}}
}

// add says whether samples of other nodes went.
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

// shrink removes what is too much: of nodes that have been silent for longest all, if there are too many nodes; then of
// each what is above its share.
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

// share is how many samples a node may have.
func (r *reservoir) share() int { return max(r.limit/len(r.nodes), minPerNode) }

// thin removes what is above the share: of those held back if they are more than their part, else of the others, and
// the newest never.
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

// records are all that are kept, in the order in which they came.
func (r *reservoir) records() (all []record) {
	for _, of := range r.nodes {
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// training are the samples that may be learnt from, in the order in which they came.
func (r *reservoir) training() (samples []Sample) {
	for _, rec := range r.records() {
		if !rec.Held {
			samples = append(samples, rec.Sample)
		}
	}
	return samples
}
