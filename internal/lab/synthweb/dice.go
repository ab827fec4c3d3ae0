package synthweb

import "math"

// A dice is a stream of pseudo-random numbers that begins at a hash: splitmix64 (Steele, Lea, Flood 2014).
type dice uint64

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hash is a number drawn from the seed and what is asked about, so that each question has its own answer.
func hash(seed uint64, about ...uint64) uint64 {
	for _, x := range about {
		seed = mix(seed + 0x9e3779b97f4a7c15 + x*0xd1342543de82ef95)
	}
	return seed
}

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	return mix(uint64(*d))
}

// below is a number in [0, n).
func (d *dice) below(n int) int { return int(d.next() >> 33 * uint64(n) >> 31) }

// chance is true perMille times in a thousand.
func (d *dice) chance(perMille int) bool { return d.below(1000) < perMille }

// unit is a number in [0, 1).
func (d *dice) unit() float64 { return float64(d.next()>>11) / (1 << 53) }

// normal is a standard normal variate, by Box and Muller.
func (d *dice) normal() float64 {
	return math.Sqrt(-2*math.Log(1-d.unit())) * math.Cos(2*math.Pi*d.unit())
}

// lognormal is a variate with the given median.
func (d *dice) lognormal(median, sigma float64) float64 { return median * math.Exp(sigma*d.normal()) }

// ranked is a number in [0, n), low ones far more often: what n links a page makes the in-degrees of the pages a power
// law with exponent 2.33.
func (d *dice) ranked(n int) int {
	u := d.unit()
	return int(float64(n) * u * u * u * u)
}
