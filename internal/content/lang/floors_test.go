package lang

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"
)

// known are the known languages; fil has the name tl in the test data.
const known = "zh en ja ko de ur fr ru es pt ar hi it id ms my fa vi mn kk ky ne fil ps lo tg bo"

type sentence struct{ Lang, Text string }

// declaration reads sentences of the Universal Declaration of Human Rights, which the model has not seen in these
// languages.
func declaration(t testing.TB) []sentence {
	t.Helper()
	return sentences(t, filepath.Join("testdata", "declaration.jsonl"))
}

func sentences(t testing.TB, path string) (out []sentence) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s sentence
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if s.Lang == "tl" {
			s.Lang = "fil"
		}
		out = append(out, s)
	}
	return out
}

// A tally counts detected languages by actual language.
type tally map[string]map[string]int

func (c tally) add(s sentence) {
	if c[s.Lang] == nil {
		c[s.Lang] = map[string]int{}
	}
	c[s.Lang][Detect(s.Text).Lang]++
}

// right returns how many texts of a language were detected correctly, and how many there are.
func (c tally) right(lang string) (right, all int) {
	for _, n := range c[lang] {
		all += n
	}
	return c[lang][lang], all
}

// below reports the languages, or all if none is given, that are detected less often than the floor. One error is
// always tolerated, because with few texts it exceeds the floor.
func (c tally) below(t *testing.T, what string, floor float64, langs ...string) {
	t.Helper()
	if langs == nil {
		langs = slices.Sorted(maps.Keys(c))
	}
	for _, lang := range langs {
		if right, all := c.right(lang); all-right > 1 && float64(right) < floor*float64(all) {
			t.Errorf("%s: %s found in %d of %d, floor %.1f %%; taken for %v", what, lang, right, all, 100*floor, c[lang])
		}
	}
}

// pieces splits texts into the units of the floors: sentences of 60 to 100 characters (20 to 100 in Han and Hangul,
// where a character is a syllable), and runs of at least 500.
func pieces(all []sentence) (short, long []sentence) {
	runs := map[string]string{}
	for _, s := range all {
		n, least := utf8.RuneCountInString(s.Text), 60
		if strings.Contains("zh ja ko", s.Lang) {
			least = 20
		}
		if n >= least && n <= 100 {
			short = append(short, s)
		}
		runs[s.Lang] += s.Text + " "
		if utf8.RuneCountInString(runs[s.Lang]) > 500 {
			long = append(long, sentence{s.Lang, runs[s.Lang]})
			runs[s.Lang] = ""
		}
	}
	return short, long
}

func count(all []sentence) tally {
	c := tally{}
	for _, s := range all {
		c.add(s)
	}
	return c
}

func TestDeclaration(t *testing.T) {
	short, long := pieces(declaration(t))
	c, l := count(short), count(long)
	for lang := range strings.FieldsSeq(known) {
		if _, n := count(declaration(t)).right(lang); n < 10 {
			t.Errorf("%d sentences of %s", n, lang)
		}
	}
	c.log(t, "the Declaration, sentences", "id ms fil", "ar fa ur ps", "ru mn kk ky tg", "hi ne", known)
	l.log(t, "the Declaration, long texts", known)
	l.below(t, "long texts", 0.995)
	// The Indonesian text of 1948 has boleh and mempunyai where the current one has bisa and memiliki, and lines of
	// legal Malay often could be Indonesian: "telah diberikan segala jaminan yang perlu untuk pembelaannya". No word
	// list distinguishes these; the floor keeps the current result.
	c.below(t, "lines of legalese", 0.87, "id", "ms")
	delete(c, "id")
	delete(c, "ms")
	c.below(t, "sentences", 0.98)
}

// Everyday sentences and news, written for this test, not to show the differences. Four of them consist of words that
// both languages use ("Bayi itu menangis sepanjang malam") or that the other language uses more often ("Beliau pernah
// menjadi wartawan"). With 70 of each, two may be wrong.
func TestIndonesianAndMalay(t *testing.T) {
	short, long := pieces(sentences(t, filepath.Join("testdata", "id-ms.jsonl")))
	c, l := count(short), count(long)
	c.log(t, "sentences", "id ms")
	c.below(t, "sentences", 0.97)
	l.below(t, "long texts", 0.995)
}

// conformance reads the sentences in KUMO_TEST_DATA.
func conformance(t *testing.T) []sentence {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA is not set: no sentences to judge by")
	}
	return append(sentences(t, filepath.Join(dir, "lang", "sentences.jsonl")),
		sentences(t, filepath.Join(dir, "lang", "udhr-part.jsonl"))...)
}

// The sentences for Malay are largely Indonesian, so they cannot be used to judge Malay; TestIndonesianAndMalay does.
func TestFloors(t *testing.T) {
	all := slices.DeleteFunc(conformance(t), func(s sentence) bool {
		return s.Lang == "ms" || !slices.Contains(strings.Fields(known), s.Lang)
	})
	short, long := pieces(all)
	c, l := count(short), count(long)
	c.below(t, "sentences", 0.98)
	l.below(t, "long texts", 0.995)
	c.log(t, "sentences", "id ms fil", "ar fa ur ps", "ru mn kk ky tg", "hi ne", known)
	l.log(t, "long texts", known)
}

func TestForeign(t *testing.T) {
	taken, n := tally{}, 0
	for _, s := range conformance(t) {
		if slices.Contains(strings.Fields(known), s.Lang) {
			continue
		}
		n++
		if Detect(s.Text).Lang != Other {
			taken.add(s)
		}
	}
	wrong := 0
	for lang := range taken {
		_, all := taken.right(lang)
		wrong += all
	}
	t.Logf("%d of %d foreign sentences taken for a known language: %v", wrong, n, taken)
	if 20*wrong > n {
		t.Errorf("%d of %d foreign sentences taken for a known language, at most 5 %% may be", wrong, n)
	}
}

// log prints the detected languages of the texts of each group.
func (c tally) log(t *testing.T, what string, groups ...string) {
	t.Helper()
	var b strings.Builder
	for _, group := range groups {
		c.table(&b, strings.Fields(group))
	}
	t.Logf("%s\n%s", what, b.String())
}

func (c tally) table(w io.Writer, langs []string) {
	tab := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	defer tab.Flush()
	fmt.Fprintf(tab, "\t%s\tother\trest\tright\t\n", strings.Join(langs, "\t"))
	for _, lang := range langs {
		right, all := c.right(lang)
		if all == 0 {
			continue
		}
		fmt.Fprintf(tab, "%s\t", lang)
		rest := all
		for _, as := range append(slices.Clone(langs), Other) {
			fmt.Fprintf(tab, "%d\t", c[lang][as])
			rest -= c[lang][as]
		}
		fmt.Fprintf(tab, "%d\t%.1f %%\t\n", rest, 100*float64(right)/float64(all))
	}
}
