package split

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// A Fitness is what a swarm makes small.
type Fitness func(nodes []Time, counts []int) float64

// SwarmConfig is the paper's where it is 0.
type SwarmConfig struct {
	Particles  int     // 0: 30
	Iterations int     // 0: 100; the paper does not say
	Inertia    float64 // 0: 0.8
	ToOwn      float64 // c1, the pull to the best that a particle has met; 0: 2
	ToBest     float64 // c2, the pull to the best that any has met; 0: 2
	Fitness    Fitness // nil: Variance, as in the paper; Makespan is what users want
	Seed       uint64
}

func (c SwarmConfig) withDefaults() SwarmConfig {
	c.Particles, c.Iterations = cmp.Or(c.Particles, 30), cmp.Or(c.Iterations, 100)
	c.Inertia, c.ToOwn, c.ToBest = cmp.Or(c.Inertia, 0.8), cmp.Or(c.ToOwn, 2), cmp.Or(c.ToBest, 2)
	if c.Fitness == nil {
		c.Fitness = Variance
	}
	return c
}

// A particle is a split that moves.
type particle struct {
	at, best []int
	velocity []float64
	fitness  float64 // of best
}

// Swarm looks for a split with the least fitness by particle swarm optimisation, as the paper does. Nodes have at least
// one. What it finds has all units, and no negative counts; it may be any distance from the best.
func Swarm(nodes []Time, units int, c SwarmConfig) []int {
	c = c.withDefaults()
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	start := make([]int, len(nodes))
	for i := range start {
		start[i] = units / len(nodes)
	}
	repair(start, units, rng)
	swarm := make([]particle, c.Particles)
	for p := range swarm {
		velocity := make([]float64, len(nodes))
		for i := range velocity {
			velocity[i] = rng.Float64()
		}
		swarm[p] = particle{slices.Clone(start), slices.Clone(start), velocity, c.Fitness(nodes, start)}
	}
	best, fitness := start, swarm[0].fitness
	for range c.Iterations {
		for p := range swarm {
			p := &swarm[p]
			p.move(best, units, c, rng)
			if now := c.Fitness(nodes, p.at); now < p.fitness {
				p.fitness = now
				copy(p.best, p.at)
			}
		}
		for _, p := range swarm {
			if p.fitness < fitness {
				fitness, best = p.fitness, slices.Clone(p.best)
			}
		}
	}
	return best
}

// move changes velocity and place. No velocity is above the number of units: with the paper's weights they would grow
// without end.
func (p *particle) move(best []int, units int, c SwarmConfig, rng *rand.Rand) {
	r1, r2, most := rng.Float64(), rng.Float64(), float64(units)
	for i := range p.at {
		at := float64(p.at[i])
		v := c.Inertia*p.velocity[i] + c.ToOwn*r1*(float64(p.best[i])-at) + c.ToBest*r2*(float64(best[i])-at)
		p.velocity[i] = min(max(v, -most), most)
		p.at[i] += int(math.Round(p.velocity[i]))
	}
	repair(p.at, units, rng)
}

// repair makes negative counts 0, and spreads what the sum has too much or too little over all counts alike, as far as
// they have it; what does not go up falls to some of them.
func repair(counts []int, units int, rng *rand.Rand) {
	sum := 0
	for i := range counts {
		counts[i] = max(counts[i], 0)
		sum += counts[i]
	}
	for sum > units {
		some := 0
		for _, n := range counts {
			if n > 0 {
				some++
			}
		}
		each := (sum - units) / some
		for i, n := range counts {
			less := min(n, each)
			counts[i] -= less
			sum -= less
		}
		for each == 0 && sum > units {
			if i := rng.IntN(len(counts)); counts[i] > 0 {
				counts[i]--
				sum--
			}
		}
	}
	for i, more := range Even(len(counts), units-sum) {
		counts[i] += more
	}
}
