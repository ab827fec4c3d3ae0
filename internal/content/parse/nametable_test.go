package parse

import (
	"math/rand/v2"
	"testing"

	"kumo/internal/lab/testmain"
)

// Reading a name eight bytes at a time has the same result as byte by byte.
func TestNamesRead(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"style", "STYLE", "href", "http-equiv", "a", "B", "textarea", "hreflang", "annotation-xml", "h1",
		"-", ":", "=", "/", ">", " ",
		"\t", "\n", "\f", "\r", "\x00", "\"", "'", "?", "@", "[", "_", "{", "\x7f", "\x80", "\xc3\xbc", "\xff"}
	for range testmain.Rounds(60_000, 300_000) {
		var src []byte
		for range 1 + random.IntN(8) {
			src = append(src, parts[random.IntN(len(parts))]...)
		}
		i := random.IntN(len(src))
		ends := []uint8{endsTagName, endsAttrName}[random.IntN(2)]
		end := nameEnd(src, i, ends)
		if got, at := attrs.read(src, i, ends); at != end || got != attrs.find(src, i, end) {
			t.Fatalf("seed %d: attribute at %d of %q is %d and ends at %d, want %d", seed, i, src, got, at, end)
		}
		if got, at := tags.read(src, i, ends); at != end || got != tags.find(src, i, end) {
			t.Fatalf("seed %d: tag at %d of %q is %d and ends at %d, want %d", seed, i, src, got, at, end)
		}
	}
	if got, _ := tags.read([]byte("Textarea>"), 0, endsTagName); got != tagTextarea {
		t.Errorf("Textarea is tag %d", got)
	}
}
