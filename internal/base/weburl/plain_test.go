package weburl

import (
	"math/rand/v2"
	"strings"
	"testing"

	"kumo/internal/lab/testmain"
)

// checkPlain checks that the fast path, if it applies, has the same result as the general path.
func checkPlain(t *testing.T, base URL, ref string) (plain bool) {
	t.Helper()
	long := parser{base: base, pathSet: encodePath, querySet: encodeQuery}
	err := long.parse([]byte(ref))
	u, errResolve := base.Resolve(ref)
	if at, ok := plainAbsolute(ref, encodePath, encodeQuery); ok {
		plain = true
		if want := long.url(ref); at.pathEnd > at.path && int(at.queryEnd) == len(ref) &&
			(err != nil || u != want || errResolve != nil) {
			t.Errorf("%q on %q = %+v, %v, want %+v, %v", ref, base, u, errResolve, want, err)
		}
	}
	const before = "before "
	short := parser{base: base, dst: []byte(before), start: len(before), canonical: true, pathSet: canonicalPath,
		querySet: canonicalQuery}
	long = short
	err = long.parse([]byte(ref))
	if short.appendPlain([]byte(ref)) {
		plain = true
		if err != nil || string(short.dst) != string(long.dst) {
			t.Errorf("%q on %q has the canonical form %q, want %q, %v", ref, base, short.dst, long.dst, err)
		}
	} else if string(short.dst) != before {
		t.Errorf("%q on %q, which is not plain, left %q", ref, base, short.dst)
	}
	return plain
}

var (
	plainBases = []string{"http://example.com/", "https://user:pw@example.com:8080/a%7eb/c|d/e?q#f",
		"ftp://example.com/a/", "mailto:a@b", "",
		"http://example.com/a/" + strings.Repeat("b/", MaxLength/6)}
	plainPieces = strings.Fields("http https ftp : : // / / / ? # . .. %2e %7E %41 %D0%B0 %2F %d0 % - _ ~ a b A " +
		"index.html example.com www. xn-- 1 0 0x7f 80 " +
		"443 :8080 :65536 :080 @ [::1] \\ | ' \" < ü = & ; + user:pw@")
)

func TestPlain(t *testing.T) {
	const seed = 1
	random, plain := rand.New(rand.NewPCG(seed, 0)), 0
	pieces := append(plainPieces, " ", "\t", "\n", "\x00", "\x7f", "http://", "https://", "https://example.com",
		"http://h:")
	rounds := testmain.Rounds(60_000, 300_000)
	for range rounds {
		var ref strings.Builder
		for range random.IntN(9) {
			ref.WriteString(pieces[random.IntN(len(pieces))])
		}
		base, err := Parse(plainBases[random.IntN(len(plainBases))])
		if err != nil {
			base = URL{}
		}
		if checkPlain(t, base, ref.String()) {
			plain++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if plain < rounds/30 {
		t.Errorf("only %d of the references are plain", plain)
	}
}

func TestPlainLength(t *testing.T) {
	const third = MaxLength / 3
	for _, n := range []int{third - 40, third - 20, third - 11, third - 1, third, third + 1, MaxLength - 20, MaxLength - 1,
		MaxLength, MaxLength + 1} {
		for _, b := range plainBases {
			base, err := Parse(b)
			if err != nil {
				base = URL{}
			}
			path := strings.Repeat("p", n)
			checkPlain(t, base, path)
			checkPlain(t, base, "/"+path)
			checkPlain(t, base, "http://example.com/"+path)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, base := range plainBases[:5] {
		for _, ref := range []string{"/a/b?q", "a/b?#", "https://example.com:8080/a?b#c", "http://a.b", "//a/b", "x:y",
			"http://a:80/", "http://1"} {
			f.Add(base, ref)
		}
	}
	f.Fuzz(func(t *testing.T, base, ref string) {
		b, err := Parse(base)
		if err != nil {
			b = URL{}
		}
		checkPlain(t, b, ref)
	})
}
