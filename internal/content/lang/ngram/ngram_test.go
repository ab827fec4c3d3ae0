package ngram

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSpansAreInOrder(t *testing.T) {
	for i := 1; i < len(spans); i++ {
		if spans[i].lo <= spans[i-1].hi || spans[i].lo > spans[i].hi {
			t.Errorf("%U-%U after %U-%U", spans[i].lo, spans[i].hi, spans[i-1].lo, spans[i-1].hi)
		}
	}
}

// Spans must agree with Unicode's scripts, except for letters that belong to several scripts.
func TestSpansAgreeWithUnicode(t *testing.T) {
	tables := map[Script][]*unicode.RangeTable{
		Latn: {unicode.Latin}, Cyrl: {unicode.Cyrillic}, Arab: {unicode.Arabic}, Deva: {unicode.Devanagari},
		Hani: {unicode.Han},
		Kana: {unicode.Hiragana, unicode.Katakana}, Hang: {unicode.Hangul}, Tibt: {unicode.Tibetan}, Mymr: {unicode.Myanmar},
		Laoo: {unicode.Lao}, Thai: {unicode.Thai}, Grek: {unicode.Greek}, Hebr: {unicode.Hebrew}, Geor: {unicode.Georgian},
	}
	for s, table := range tables {
		for _, sp := range spans {
			for r := sp.lo; r <= sp.hi && sp.script == s; r++ {
				if unicode.IsLetter(r) && !unicode.In(r, append(table, unicode.Common, unicode.Inherited)...) && s != Grek {
					t.Errorf("%U is no letter of %s", r, s)
				}
			}
		}
		for _, r := range []rune{'A', 'ж', 'ب', 'क', '漢', 'か', '한', 'ཀ', 'က', 'ກ', 'ก', 'λ', 'ש', 'ა'} {
			if got := Of(r) == s; got != unicode.In(r, table...) {
				t.Errorf("%c in %s: %v", r, s, got)
			}
		}
	}
}

func TestOfLooksUpTheSpans(t *testing.T) {
	for _, s := range spans {
		for _, r := range []rune{s.lo, (s.lo + s.hi) / 2, s.hi} {
			if Of(r) != s.script {
				t.Errorf("%U is %s, want %s", r, Of(r), s.script)
			}
		}
	}
	for _, r := range []rune{-1, 0, ' ', '5', 0x2FF, 0x3000, 0xA48D, 0xFFFD, utf8.MaxRune} {
		if Of(r) != Zyyy {
			t.Errorf("%U is %s", r, Of(r))
		}
	}
}

func TestCensus(t *testing.T) {
	got := Census([]byte("ab Ж, क\xff漢字 12"))
	want := [Scripts]int{Latn: 2, Cyrl: 2, Deva: 3, Hani: 6}
	want[Zyyy] = got[Zyyy] // only letters matter
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFold(t *testing.T) {
	for _, tt := range []struct {
		text   string
		script Script
		want   string
	}{
		{"", Latn, " "},
		{"Grüße, ÄÖ 12x", Latn, " grüße äö x "},
		{"...Ab\xff\xfeC...", Latn, " ab c "},
		{"Слово word слово", Cyrl, " слово слово "},
		{"كِتَاب", Arab, " كتاب "},
		{"می\u200cخواهم", Arab, " می خواهم "},
		{"ཀ་ཁ།", Tibt, " ཀ ཁ "},
	} {
		if got := string(Fold(make([]rune, 0, 64), []byte(tt.text), tt.script)); got != tt.want {
			t.Errorf("Fold(%q, %s) = %q, want %q", tt.text, tt.script, got, tt.want)
		}
	}
}

func TestFoldStopsWhenFull(t *testing.T) {
	for size := range 12 {
		if got := Fold(make([]rune, 0, size), []byte("abc def ghi jkl"), Latn); len(got) > size || cap(got) != size {
			t.Errorf("%d letters in room for %d", len(got), size)
		}
	}
}

func TestGrams(t *testing.T) {
	s := Shape{Min: 1, Max: 3, Words: true, Bits: 20}
	grams := func(text string) []uint32 { return s.Grams(nil, []rune(text)) }
	// " ab ": a, " a", b, "ab", " ab", the word, "b ", "ab "
	if got := grams(" ab "); len(got) != 8 {
		t.Errorf("%d grams of a word of two letters", len(got))
	}
	if got := (Shape{Min: 1, Words: true, Bits: 20}).Grams(nil, []rune(" ab cde ")); len(got) != 2 {
		t.Errorf("%d grams of two words, of words alone", len(got))
	}
	one, two, both := grams(" ab "), grams(" cde "), grams(" ab cde ")
	if !slices.Equal(append(one, two...), both) {
		t.Error("words are not apart from each other")
	}
	if seen := slices.Compact(slices.Sorted(slices.Values(both))); len(seen) < len(both)-1 {
		t.Errorf("%d buckets for %d grams", len(seen), len(both))
	}
}

// classifier returns a classifier with random weights from a seed.
func classifier(classes int, seed uint64) *Classifier {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &Classifier{Script: Latn, Shape: Shape{Min: 1, Max: 2, Bits: 6}, Scale: 0.25}
	for i := range classes {
		c.Classes = append(c.Classes, string(rune('a'+i)))
		c.Bias = append(c.Bias, rng.Float32())
	}
	c.Weights = make([]uint64, c.Stride()<<c.Shape.Bits)
	for b := range 1 << c.Shape.Bits {
		for i := range classes {
			c.Weights[b*c.Stride()+i/Lanes] |= uint64(byte(rng.IntN(256))) << (8 * (i % Lanes))
		}
	}
	return c
}

func TestSumIsTheSumOfTheWeights(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 2000} {
		c, rng := classifier(21, uint64(n)), rand.New(rand.NewPCG(7, uint64(n)))
		var want, got [MaxClasses]int32
		buckets := make([]uint32, n)
		for i := range buckets {
			buckets[i] = rng.Uint32N(64)
			for class := range c.Classes {
				want[class] += int32(c.column(class)[buckets[i]]) - 128
			}
		}
		c.Sum(&got, buckets)
		if diff := cmp.Diff(want[:21], got[:21]); diff != "" {
			t.Errorf("%d buckets: %s", n, diff)
		}
	}
}

func TestProbabilities(t *testing.T) {
	c := classifier(3, 1)
	c.Bias = []float32{0, 0, 0}
	sums := [MaxClasses]int32{40, 40, 36}
	p := c.Probabilities(nil, &sums, 2)
	if p[0] != p[1] || math.Abs(p[0]+p[1]+p[2]-1) > 1e-9 || math.Abs(math.Log(p[0]/p[2])-0.5) > 1e-6 {
		t.Errorf("%v", p)
	}
	sums[0] = math.MaxInt32
	if p := c.Probabilities(nil, &sums, 0); p[0] != 1 {
		t.Errorf("%v for a score that is far above the rest", p)
	}
}

func TestModelReadsWhatItWrote(t *testing.T) {
	m := &Model{Classifiers: []*Classifier{classifier(21, 1), classifier(3, 2)}}
	m.Classifiers[1].Finer = true
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	got, err := Read(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
	for n := range len(whole) - 10 {
		if _, err := Read(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("no error for %d of %d bytes", n, len(whole))
		}
	}
}

func TestReadRefusesOtherHeaders(t *testing.T) {
	for _, change := range []func(*Classifier){
		func(c *Classifier) { c.Script = Zyyy },
		func(c *Classifier) { c.Bias = c.Bias[1:] },
		func(c *Classifier) { c.Shape.Max = 5 },
		func(c *Classifier) { c.Shape.Min = 0 },
	} {
		c := classifier(3, 1)
		change(c)
		var b bytes.Buffer
		if err := (&Model{Classifiers: []*Classifier{c}}).Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&b); !errors.Is(err, ErrModel) {
			t.Errorf("%+v: %v", c.Shape, err)
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add("Grüße \xff Слово", uint8(Latn), uint8(20))
	f.Fuzz(func(t *testing.T, text string, script, size uint8) {
		// letters without a script are not folded
		folded := Fold(make([]rune, 0, size), []byte(text), Latn+Script(script)%(Scripts-Latn))
		if len(folded) > int(size) || strings.Contains(string(folded), "  ") {
			t.Fatalf("%q in %d", string(folded), size)
		}
		shape := Shape{Min: 1, Max: 4, Words: true, Bits: 12}
		for _, b := range shape.Grams(nil, folded) {
			if b >= 1<<12 {
				t.Fatalf("bucket %d", b)
			}
		}
		if n := shape.Grams(nil, folded); len(n) > 6*utf8.RuneCountInString(text)+6 {
			t.Fatalf("%d grams", len(n))
		}
	})
}
