package duplicate

import "math/bits"

const (
	bins        = 64
	minShingles = 16 // below which a sketch is not compared
	minWords    = 3  // of a short page, below which it is not compared
)

// A sketch is a MinHash of a text's shingles, which are three consecutive words each. One permutation is divided into
// bins, and the sketch keeps the minimum of each.
type sketch struct {
	least    [bins]uint64
	last     [2]uint64 // the last two words
	shingles int       // negative until there are two words
}

const empty = ^uint64(0)

func (s *sketch) reset() {
	s.last, s.shingles = [2]uint64{}, -2
	for i := range s.least {
		s.least[i] = empty
	}
}

// shingle hashes the last two words and another one.
func (s *sketch) shingle(word uint64) uint64 {
	return mix(s.last[0]*0x9e3779b97f4a7c15 + s.last[1]*0xc2b2ae3d27d4eb4f + word)
}

// add adds a word and the hash of the shingle that it ends.
func (s *sketch) add(h, word uint64) {
	s.last[0], s.last[1] = s.last[1], word
	if s.shingles++; s.shingles <= 0 {
		return
	}
	if bin, value := h>>58, h<<6>>6; value < s.least[bin] {
		s.least[bin] = value
	}
}

// mix distributes the bits of a number, with one multiplication to 128 bits as in wyhash.
func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0xbf58476d1ce4e5b9, x^0x94d049bb133111eb)
	return hi ^ lo
}

// minima returns 16 bits of each bin's minimum. An empty bin takes the value of the next non-empty bin (Shrivastava and
// Li, "Densifying One Permutation Hashing via Rotation for Fast Near Neighbor Search", ICML 2014).
func (s *sketch) minima() (m [bins]uint16) {
	if s.shingles <= 0 {
		return m
	}
	for i := range m {
		far := uint64(0)
		for s.least[(i+int(far))%bins] == empty {
			far++
		}
		m[i] = uint16(mix(s.least[(i+int(far))%bins] + far<<58))
	}
	return m
}

// equalBins returns the number of bins in which two sketches agree.
func equalBins(a, b *[bins]uint16) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}
