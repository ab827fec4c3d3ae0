package advice

import "strings"

// Nearest returns the name most similar to typed, or "" if none is similar.
func Nearest(typed string, names []string) string {
	best, least := "", len(typed)/2+1
	for _, n := range names {
		if d := distance(strings.ToLower(typed), n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is the number of insertions, deletions and replacements between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
