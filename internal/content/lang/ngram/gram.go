package ngram

// Shape configures the n-grams of a model.
type Shape struct {
	Min, Max int  // lengths in letters, at most 4; Max 0 disables n-grams
	Words    bool // also use whole words
	Bits     int  // bits of the hash that is the bucket of a gram
}

// Each length has its own multiplier, so that grams of different lengths get different hashes.
var multipliers = [5]uint64{0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53,
	0x87C37B91114253D5}

// Grams appends the buckets of the n-grams of a folded text to dst. N-grams of two and more letters include the
// boundaries. Only the low 16 bits of a letter are used; letters beyond that are too rare to matter.
func (s Shape) Grams(dst []uint32, folded []rune) []uint32 {
	shift := 64 - uint(s.Bits)
	var last, word uint64 // the last four letters, 16 bits each; and the hash of the current word
	have := 0             // how many of the last four letters belong to this word, with its leading boundary
	for _, r := range folded {
		last = last<<16 | uint64(uint16(r))
		have = min(have+1, 4)
		if r == boundary {
			if s.Words && word != 0 {
				dst = append(dst, uint32(word*multipliers[0]>>shift))
			}
			word = 0
		} else {
			word = (word ^ uint64(r)) * 0x100000001B3
			if s.Min <= s.Max && s.Min == 1 {
				dst = append(dst, uint32((last&0xFFFF)*multipliers[1]>>shift))
			}
		}
		for n := max(s.Min, 2); n <= min(s.Max, have); n++ {
			dst = append(dst, uint32(last<<(64-16*uint(n))*multipliers[n]>>shift))
		}
		if r == boundary {
			have = 1
		}
	}
	return dst
}
