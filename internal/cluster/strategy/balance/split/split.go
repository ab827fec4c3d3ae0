package split

import "math"

// A Time returns how long a node takes for n units, in seconds. It is only called for n > 0, and must not decrease.
// +Inf or NaN means that the node cannot do so many.
type Time func(n int) float64

// at returns the time for n units.
func (f Time) at(n int) float64 {
	if n <= 0 {
		return 0
	}
	if s := f(n); s == s {
		return s
	}
	return math.Inf(1)
}

// Makespan returns the time of the whole run, in seconds, which is the longest time of a node.
func Makespan(nodes []Time, counts []int) (longest float64) {
	for i, f := range nodes {
		longest = max(longest, f.at(counts[i]))
	}
	return longest
}

// Variance returns the variance of the nodes' times, in seconds squared, which the paper minimizes.
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

// Even splits units equally among nodes; the first ones get one more if there is a remainder.
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
