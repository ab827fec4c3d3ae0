package experiments

import (
	"cmp"
	"math"
	"slices"
)

// kendall returns Kendall's tau-b of two orders: 1 if they agree, -1 if one is the reverse of the other. Ties count for
// neither. It sorts instead of comparing all pairs (Knight, 1966). It returns NaN if all values of one order are equal.
func kendall(x, y []float64) float64 {
	order := make([]int32, len(x))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(x[a], x[b]), cmp.Compare(y[a], y[b]))
	})
	same := func(a, b int32) bool { return x[a] == x[b] }
	equalX := equalPairs(order, same)
	equalBoth := equalPairs(order, func(a, b int32) bool { return x[a] == x[b] && y[a] == y[b] })
	against := sortPairs(order, make([]int32, len(order)), y)
	equalY := equalPairs(order, func(a, b int32) bool { return y[a] == y[b] })
	all := int64(len(x)) * int64(len(x)-1) / 2
	agreed := float64(all - equalX - equalY + equalBoth - 2*against)
	return agreed / math.Sqrt(float64(all-equalX)*float64(all-equalY))
}

// equalPairs returns the number of pairs of equal elements of a sorted list.
func equalPairs(order []int32, same func(a, b int32) bool) (pairs int64) {
	run := int64(1)
	for i := 1; i < len(order); i++ {
		if !same(order[i-1], order[i]) {
			run = 0
		}
		pairs += run
		run++
	}
	return pairs
}

// sortPairs sorts a list by y, and returns the number of inversions. room is a buffer of the same length.
func sortPairs(order, room []int32, y []float64) (against int64) {
	if len(order) < 2 {
		return 0
	}
	half := len(order) / 2
	a, b := order[:half], order[half:]
	against = sortPairs(a, room[:half], y) + sortPairs(b, room[half:], y)
	merged := room[:0]
	for len(a) > 0 && len(b) > 0 {
		if y[a[0]] <= y[b[0]] {
			merged, a = append(merged, a[0]), a[1:]
			continue
		}
		against += int64(len(a))
		merged, b = append(merged, b[0]), b[1:]
	}
	merged = append(append(merged, a...), b...)
	copy(order, merged)
	return against
}
