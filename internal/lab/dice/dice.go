// Package dice draws pseudo-random numbers that follow from a seed, and from what is asked about.
package dice

import "math"

// A Dice is a stream of pseudo-random numbers that begins at a hash: splitmix64 (Steele, Lea, Flood 2014).
type Dice uint64

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash is a number drawn from the seed and what is asked about, so that each question has its own answer.
func Hash(seed uint64, about ...uint64) uint64 {
	for _, x := range about {
		seed = mix(seed + 0x9e3779b97f4a7c15 + x*0xd1342543de82ef95)
	}
	return seed
}

// Next is the next number.
func (d *Dice) Next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// Below is a number in [0, n).
func (d *Dice) Below(n int) int { return int(d.Next() >> 33 * uint64(n) >> 31) }

// Chance is true perMille times in a thousand.
func (d *Dice) Chance(perMille int) bool { return d.Below(1000) < perMille }

// Unit is a number in [0, 1).
func (d *Dice) Unit() float64 { return float64(d.Next()>>11) / (1 << 53) }

// Normal is a standard normal variate, by Box and Muller.
func (d *Dice) Normal() float64 {
	return math.Sqrt(-2*math.Log(1-d.Unit())) * math.Cos(2*math.Pi*d.Unit())
}

// Lognormal is a variate with the given median.
func (d *Dice) Lognormal(median, sigma float64) float64 { return median * math.Exp(sigma*d.Normal()) }

// Ranked is a number in [0, n), low ones far more often: what n links a page makes the in-degrees of the pages a power
// law with exponent 2.33.
func (d *Dice) Ranked(n int) int {
	u := d.Unit()
	return int(float64(n) * u * u * u * u)
}
