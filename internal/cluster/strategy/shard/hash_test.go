package shard

import "testing"

// TestHashes fixes the hash functions, so that others can reimplement them.
func TestHashes(t *testing.T) {
	h := newHashes(42)
	if h != (hashes{first: 0x624383af5f61257e, second: 0xf4758c06262a22de}) {
		t.Errorf("keys: %#x", h)
	}
	for key, want := range map[string][3]uint64{
		"example.com": {0xd9daccc1eb8f5e20, 0xfa169535db48fc42, 0x9407d3b49d297297},
		"":            {0xd71ae1b941713fde, 0x875ec03b73b08863, 0x9407d3b49d297297},
	} {
		first, second := h.of(key)
		if got := [3]uint64{first, second, h.node("a~1")}; got != want {
			t.Errorf("%q: %#x, want %#x", key, got, want)
		}
	}
	for _, c := range []struct {
		key     uint64
		n, want int
	}{{1, 1, 0}, {42, 57, 43}, {0xdead10cc, 666, 361}, {256, 1024, 520}} { // same results as other programs
		if got := jump(c.n).choose(c.key); got != c.want {
			t.Errorf("jump: %d of %d for %d, want %d", got, c.n, c.key, c.want)
		}
	}
}
