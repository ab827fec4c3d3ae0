package lang

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestInertRunesAreNormalInAnyOrder(t *testing.T) {
	var runes []rune
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && inert(r) {
			runes = append(runes, r)
		}
	}
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		var s []rune
		for range 20 {
			s = append(s, runes[rng.IntN(len(runes))])
		}
		if !norm.NFC.IsNormalString(string(s)) {
			t.Fatalf("seed %d: %q is not in NFC", seed, string(s))
		}
	}
	for _, r := range runes {
		if !norm.NFC.IsNormalString(string(r)) {
			t.Errorf("%U is not in NFC", r)
		}
	}
}

func TestNormal(t *testing.T) {
	for _, text := range []string{"", "plain", "fa\u0327cade", "e\u0301", "क\u093C", "\u0958", "한국", "\u1112\u1161\u11AB",
		"a\xffe\u0301\xff",
		"\u0915\u094D\u093C\u0915", "\u094D\u093C", "xe\u0301\u0327e\u0327\u0301y", "\u0301a"} {
		if got, want := string(toNFC(new(norm.Iter), nil, []byte(text))), norm.NFC.String(text); got != want {
			t.Errorf("normal(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzNormal(f *testing.F) {
	f.Add("e\u0301\u0327 \u0915\u094D\u093C \xff\u1EAD")
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := string(toNFC(new(norm.Iter), nil, []byte(text))), norm.NFC.String(text); got != want {
			t.Errorf("normal(%q) = %q, want %q", text, got, want)
		}
	})
}
