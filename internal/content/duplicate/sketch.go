package duplicate

const (
	bins        = 64
	minShingles = 16 // below which a sketch says nothing
	minWords    = 3  // of a short page, below which it is not compared
)

// A sketch is made of a text's shingles, three words in a row each: one permutation cut into bins, of each of which the
// least is kept.
type sketch struct {
	least    [bins]uint64
	last     [2]uint64 // words
	shingles int       // less than 0 until there are two words
}

const empty = ^uint64(0)

func (s *sketch) reset() {
	s.last, s.shingles = [2]uint64{}, -2
	for i := range s.least {
		s.least[i] = empty
	}
}

// shingle hashes the last two words and another.
func (s *sketch) shingle(word uint64) uint64 {
	return mix(s.last[0]*0x9e3779b97f4a7c15 + s.last[1]*0xc2b2ae3d27d4eb4f + word)
}

// add takes a word, with the hash of the shingle that it ends.
func (s *sketch) add(h, word uint64) {
	s.last[0], s.last[1] = s.last[1], word
	if s.shingles++; s.shingles <= 0 {
		return
	}
	if bin, value := h>>58, h<<6>>6; value < s.least[bin] {
		s.least[bin] = value
	}
}

// mix spreads a number's bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// minima are 16 bits of each bin's least. An empty bin has what the next has that is not (Shrivastava and Li,
// "Densifying One Permutation Hashing via Rotation for Fast Near Neighbor Search", ICML 2014).
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

// equalBins is in how many bins two sketches have the same.
func equalBins(a, b *[bins]uint16) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}
