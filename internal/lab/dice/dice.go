// Package dice draws pseudo-random numbers that depend only on a seed and a topic.
package dice

import "math"

// A Dice is a stream of pseudo-random numbers that starts at a hash: splitmix64 (Steele, Lea, Flood 2014).
type Dice uint64

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash returns a number that depends on the seed and the topic. Each topic has its own number.
func Hash(seed uint64, about ...uint64) uint64 {
	for _, x := range about {
		seed = mix(seed + 0x9e3779b97f4a7c15 + x*0xd1342543de82ef95)
	}
	return seed
}

// Next returns the next number.
func (d *Dice) Next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// Below returns a number in [0, n).
func (d *Dice) Below(n int) int { return int(d.Next() >> 33 * uint64(n) >> 31) }

// Chance returns true with a probability of perMille in 1,000.
func (d *Dice) Chance(perMille int) bool { return d.Below(1000) < perMille }

// Unit returns a number in [0, 1).
func (d *Dice) Unit() float64 { return float64(d.Next()>>11) / (1 << 53) }

// Normal returns a standard normal variate, by the Box-Muller transform.
func (d *Dice) Normal() float64 {
	return math.Sqrt(-2*math.Log(1-d.Unit())) * math.Cos(2*math.Pi*d.Unit())
}

// Lognormal returns a lognormal variate with the given median.
func (d *Dice) Lognormal(median, sigma float64) float64 { return median * math.Exp(sigma*d.Normal()) }

// Ranked returns a number in [0, n); low numbers are far more frequent. With n links per page, the in-degrees of pages
// follow a power law with exponent 2.33.
func (d *Dice) Ranked(n int) int {
	u := d.Unit()
	return int(float64(n) * u * u * u * u)
}
