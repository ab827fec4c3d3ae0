// Package splitmix implements the random generator SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
// Number Generators", 2014).
package splitmix

// Next returns the generator's output for the state x.
func Next(x uint64) uint64 { return Mix(x + 0x9e3779b97f4a7c15) }

// Mix is the finalizer of the generator. Flipping a bit of x flips each bit of the result with a probability of one
// half.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
