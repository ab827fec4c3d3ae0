package batch

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	someGerman = "Am Morgen fuhr der Zug mit einer halben Stunde Verspätung ab, weil auf der Strecke ein Baum lag. Die " +
		"Reisenden warteten in der Halle und lasen Zeitung.\n"
	someEnglish = "In the morning the train left half an hour late because a tree had fallen on the line. The " +
		"travellers waited in the hall and read the newspaper.\n"
	someChinese = "早上因为一棵树倒在铁轨上，火车晚点了半个小时。旅客们在候车大厅里等候，看着报纸。下午城市上空又出了太阳。\n"
)

func TestTheLanguageThatMostOfATextIsIn(t *testing.T) {
	for _, c := range []struct {
		text        string
		lang        string
		least, most float32 // share
	}{
		{"", "", 0, 0},
		{"12 34\n\n56", "", 0, 0},
		{strings.Repeat(someGerman, 5), "de", 1, 1},
		{strings.Repeat(someGerman, 6) + strings.Repeat(someEnglish, 2), "de", 0.6, 0.9},
		{strings.Repeat(someEnglish, 6) + strings.Repeat(someGerman, 2), "en", 0.6, 0.9},
		{strings.Repeat(someChinese, 4), "zh", 1, 1},
		{strings.ReplaceAll(strings.Repeat(someChinese, 200), "\n", ""), "zh", 1, 1},
	} {
		lang, share, confidence := languageOf(c.text)
		if lang != c.lang || share < c.least || share > c.most || lang != "" && confidence < 0.5 {
			t.Errorf("%.30q: %s, share %v, confidence %v", c.text, lang, share, confidence)
		}
	}
}

func TestStretchesAreTheWholeText(t *testing.T) {
	for _, text := range []string{someGerman, strings.Repeat(someChinese, 30),
		strings.ReplaceAll(strings.Repeat(someChinese,
			30), "\n", ""), "\n\n\n", "x", strings.Repeat("\xff", 5000)} {
		var all strings.Builder
		for rest := text; rest != ""; {
			var part string
			if part, rest = cutStretch(rest); part == "" {
				t.Fatalf("nothing is cut off %.20q", rest)
			}
			if utf8.ValidString(text) && !utf8.ValidString(part) {
				t.Errorf("a letter is cut: %q", part)
			}
			all.WriteString(part)
		}
		if all.String() != text {
			t.Errorf("%d bytes of %d", all.Len(), len(text))
		}
	}
}

func TestTextsThatAreAlikeHaveSimhashesThatAreNear(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	words := strings.Fields(strings.Repeat(someGerman+someEnglish, 1))
	text := func() []string {
		all := make([]string, 400)
		for i := range all {
			all[i] = words[dice.IntN(len(words))]
		}
		return all
	}
	one, other := text(), text()
	near := append([]string(nil), one...)
	near[200] = "something else"
	if a, b := simhash(strings.Join(one, " ")), simhash(strings.ToUpper(strings.Join(one, "  "))); a != b || a == 0 {
		t.Errorf("white space and case make a difference: %x %x", a, b)
	}
	d, far := Differ(simhash(strings.Join(one, " ")), simhash(strings.Join(near, " "))), Differ(simhash(strings.Join(one,
		" ")),
		simhash(strings.Join(other, " ")))
	if d > 8 || far <= d {
		t.Errorf("a changed word makes %d bits of difference, another text %d", d, far)
	}
	if simhash("ab c") != 0 {
		t.Error("a text of three letters has a simhash")
	}
}

// Simhashes are stored, so they must not change.
func TestASimhashIsWhatItsDefinitionSays(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	letters := []rune("aBcdEé٣ßЖжあア早上K𐐀𠀀1 ,.\uFFFD")
	for n := range 1200 {
		text := make([]rune, n)
		for i := range text {
			text[i] = letters[dice.IntN(len(letters))]
		}
		if got, want := simhash(string(text)), plainSimhash(string(text)); got != want {
			t.Fatalf("%d letters: %016x, not %016x: %q", n, got, want, string(text))
		}
	}
}

// plainSimhash counts a vote for each bit and each run of letters.
func plainSimhash(text string) (sum uint64) {
	var letters []rune
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			letters = append(letters, unicode.ToLower(r))
		}
	}
	var votes [64]int
	for i := shingle; i <= len(letters); i++ {
		h := fnv.New64a()
		_, _ = h.Write([]byte(string(letters[i-shingle : i])))
		for bit := range votes {
			votes[bit] += int(mix(h.Sum64())>>bit&1)*2 - 1
		}
	}
	for bit, v := range votes {
		if v > 0 {
			sum |= 1 << bit
		}
	}
	return sum
}

func BenchmarkSimhash(b *testing.B) {
	text := strings.Repeat(someGerman+someChinese, 50)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		simhash(text)
	}
}
