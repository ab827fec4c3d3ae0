package split

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// A Fitness is a function that a swarm minimizes, apart from penalties.
type Fitness func(nodes []Time, counts []int) float64

// SwarmConfig configures Swarm. Zero values mean those of the paper.
type SwarmConfig struct {
	Particles  int     // 0: 30
	Iterations int     // 0: 100; the paper gives no value
	Inertia    float64 // 0: 0.8
	ToOwn      float64 // c1, the pull to the particle's own best position; 0: 2
	ToBest     float64 // c2, the pull to the best position of all; 0: 2
	Fitness    Fitness // nil: Variance, as in the paper; users want Makespan
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

// A particle is a position, which may violate the constraints, that moves.
type particle struct {
	at, best []int
	velocity []float64
	fitness  float64 // of best
}

// Swarm searches for the split with the least fitness by particle swarm optimization, as in the paper: positions may
// have another sum than units, or negative counts, at the price of penalties. The best position is then repaired, so
// the result contains all units and no negative counts, but it may be far from the best. There must be at least one
// node.
func Swarm(nodes []Time, units int, c SwarmConfig) []int {
	c = c.withDefaults()
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	fitness := func(counts []int) float64 { return c.Fitness(nodes, counts) + Penalty(counts, units) }
	best := make([]int, len(nodes))
	for i := range best {
		best[i] = units / len(nodes)
	}
	least := fitness(best)
	swarm := make([]particle, c.Particles)
	for p := range swarm {
		velocity := make([]float64, len(nodes))
		for i := range velocity {
			velocity[i] = rng.Float64()
		}
		swarm[p] = particle{slices.Clone(best), slices.Clone(best), velocity, least}
	}
	for range c.Iterations {
		for p := range swarm {
			p := &swarm[p]
			p.move(best, units, c, rng)
			if now := fitness(p.at); now < p.fitness {
				p.fitness = now
				copy(p.best, p.at)
			}
		}
		for _, p := range swarm {
			if p.fitness < least {
				least, best = p.fitness, slices.Clone(p.best)
			}
		}
	}
	repair(best, units, rng)
	return best
}

// Penalty returns the sum of the penalties in equation 11 of the paper: for a sum other than units, and for negative
// counts.
func Penalty(counts []int, units int) float64 {
	var sum, negative float64
	for _, n := range counts {
		sum += float64(n)
		negative += math.Abs(float64(n)) - float64(n)
	}
	sum -= float64(units)
	return sum*sum + negative*negative
}

// move updates velocity and position. Velocities and positions are bounded by the number of units, since with the
// paper's weights they would grow without limit.
func (p *particle) move(best []int, units int, c SwarmConfig, rng *rand.Rand) {
	r1, r2, most := rng.Float64(), rng.Float64(), float64(units)
	for i := range p.at {
		at := float64(p.at[i])
		v := c.Inertia*p.velocity[i] + c.ToOwn*r1*(float64(p.best[i])-at) + c.ToBest*r2*(float64(best[i])-at)
		p.velocity[i] = min(max(v, -most), most)
		p.at[i] = min(max(p.at[i]+int(math.Round(p.velocity[i])), -units), 2*units)
	}
}

// repair sets negative counts to 0, and spreads the difference between the sum and units equally over all counts, as
// far as possible; the remainder goes to some of them.
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
