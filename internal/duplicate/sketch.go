package duplicate

const (
	bins          = 64
	leastShingles = 16 // below which a sketch says nothing
)

// A sketch is made of a text's shingles, three words in a row each: one permutation cut into bins, of each of which the
// least is kept.
type sketch struct {
	least    [bins]uint64
	last     [2]uint64 // words
	words    int
	shingles int
}

const empty = ^uint64(0)

func (s *sketch) reset() {
	for i := range s.least {
		s.least[i] = empty
	}
}

func (s *sketch) add(word uint64) {
	if s.words++; s.words > 2 {
		s.shingles++
		h := mix(s.last[0]*0x9e3779b97f4a7c15 + s.last[1]*0xc2b2ae3d27d4eb4f + word)
		bin, value := h>>58, h<<6>>6
		if value < s.least[bin] {
			s.least[bin] = value
		}
	}
	s.last[0], s.last[1] = s.last[1], word
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
	if s.shingles == 0 {
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

// alike is in how many bins two sketches have the same.
func alike(a, b *[bins]uint16) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}
