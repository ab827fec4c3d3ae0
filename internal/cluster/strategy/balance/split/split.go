package split

import "math"

// A Time is how long a node takes for n units, in seconds: 0 for none, which it is not asked for, and never less for
// more. +Inf says that the node cannot do so many; NaN counts as that.
type Time func(n int) float64

// at is the time for n units.
func (f Time) at(n int) float64 {
	if n <= 0 {
		return 0
	}
	if s := f(n); s == s {
		return s
	}
	return math.Inf(1)
}

// Makespan is the time of the whole run, in seconds: that of the node which takes longest for its count.
func Makespan(nodes []Time, counts []int) (longest float64) {
	for i, f := range nodes {
		longest = max(longest, f.at(counts[i]))
	}
	return longest
}

// Variance is that of the nodes' times, in seconds squared: what the paper has as small as possible.
func Variance(nodes []Time, counts []int) float64 {
	var sum, squares float64
	for i, f := range nodes {
		sum += f.at(counts[i])
	}
	mean := sum / float64(len(nodes))
	for i, f := range nodes {
		d := f.at(counts[i]) - mean
		squares += d * d
	}
	return squares / float64(len(nodes))
}

// Even gives each of so many nodes the same number of units, and the first ones one more if they do not go up.
func Even(nodes, units int) []int {
	counts := make([]int, nodes)
	for i := range counts {
		counts[i] = units / nodes
		if i < units%nodes {
			counts[i]++
		}
	}
	return counts
}
