package sitepages

import "unicode"

// unspaced are the scripts without spaces between words; their words are characters.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Myanmar, unicode.Tibetan}

// Words counts the words of a text, or the characters in scripts without spaces.
func Words(s string) map[string]int {
	count := map[string]int{}
	var word []rune
	flush := func() {
		if len(word) > 0 {
			count[string(word)]++
			word = word[:0]
		}
	}
	for _, r := range s {
		switch {
		case unicode.In(r, unspaced...):
			flush()
			count[string(r)]++
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			word = append(word, r)
		default:
			flush()
		}
	}
	flush()
	return count
}

// A Score compares a text with the expected one by words.
type Score struct{ Precision, Recall, F1 float64 }

// ScoreOf compares a text with the expected one. Optional words are neither required nor wrong.
func ScoreOf(got, want, optional string) Score {
	g, w, o := Words(got), Words(want), Words(optional)
	common, returned, wanted := 0, 0, 0
	for word, n := range g {
		hit := min(n, w[word])
		common += hit
		returned += hit + max(0, n-hit-o[word])
	}
	for _, n := range w {
		wanted += n
	}
	if wanted+returned == 0 {
		return Score{1, 1, 1}
	}
	return Score{Precision: float64(common) / float64(max(returned, 1)), Recall: float64(common) / float64(max(wanted, 1)),
		F1: 2 * float64(common) / float64(returned+wanted)}
}
