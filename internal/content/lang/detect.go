package lang

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"kumo/internal/content/lang/ngram"
)

//go:generate go run ./train -corpus $KUMO_LANG_CORPUS -out model.bin

//go:embed model.bin
var packed string

// classifiers are the model's, by script. They are unpacked at the first use, which takes some hundredths of a second.
var classifiers = sync.OnceValue(func() (by [ngram.Scripts]script) {
	m, err := ngram.Read(strings.NewReader(packed))
	if err != nil {
		panic("lang: the embedded model: " + err.Error()) // the binary is broken; a test reads it
	}
	for _, c := range m.Classifiers {
		if c.Finer {
			by[c.Script].finer = append(by[c.Script].finer, c)
		} else {
			by[c.Script].Classifier = c
		}
	}
	return by
})

// A script has a classifier for all its languages, if more than one is known, and finer ones for some that lie near.
type script struct {
	*ngram.Classifier
	finer []*ngram.Classifier
}

// Other is the language of a text that is in none of the known languages, or in none at all.
const Other = "other"

// A Result is what is known about the language of a text.
type Result struct {
	Lang       string  // ISO 639-1, or 639-3 where there is none; Other
	Script     string  // ISO 15924; Hans or Hant for Chinese, Jpan, Kore; Zyyy where there are no letters
	Confidence float64 // probability as the model sees it, 0 to 1; 0 where there are no letters
}

const (
	prefix = 4 << 10 // bytes of a text that are looked at
	window = 1 << 9  // letters of them that are scored

	// Most texts show what they are in their first letters: the rest is scored where the model is less sure than this.
	quickWindow     = window / 2
	quickConfidence = 0.97
)

// Detect tells the language of a text from its first 4 KiB. Bytes that are not UTF-8 count as spaces. It may be called
// from several goroutines at once.
func Detect[T ~string | ~[]byte](text T) Result {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.text = append(s.text[:0], text[:min(prefix, len(text))]...)
	return s.detect()
}

// A scratch is the memory that one detection needs.
type scratch struct {
	text     []byte
	iter     norm.Iter
	composed [2 * prefix]byte
	letters  [window]rune
	grams    []uint32
	probs    []float64
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) detect() Result {
	count := ngram.Census(s.text)
	count[ngram.Hani] += count[ngram.Kana]
	most := ngram.Latn
	for i := ngram.Latn; i < ngram.Scripts; i++ {
		if count[i] > count[most] {
			most = i
		}
	}
	switch {
	case count[most] == 0:
		return Result{Lang: Other, Script: ngram.Zyyy.String()}
	case most == ngram.Hang:
		return Result{"ko", "Kore", 1}
	case most == ngram.Laoo:
		return Result{"lo", "Laoo", 1}
	case most == ngram.Hani && 10*count[ngram.Kana] > count[ngram.Hani]:
		return Result{"ja", "Jpan", 1}
	}
	in := classifiers()[most]
	if in.Classifier == nil {
		return Result{Other, most.String(), 1}
	}
	class, p := s.classify(in)
	return named(class, most, p)
}

// classify asks the model for the most likely class of a text in a script, and its probability.
func (s *scratch) classify(in script) (class string, p float64) {
	letters := ngram.Fold(s.letters[:0], toNFC(&s.iter, s.composed[:0], s.text), in.Script)
	class, p = s.score(in.Classifier, letters)
	for _, c := range in.finer {
		if slices.Contains(c.Classes, class) {
			within := s.sumOf(in.Classifier, c.Classes)
			class, p = s.score(c, letters)
			p *= within
		}
	}
	return class, p
}

// score fills probs with what a classifier makes of the letters and returns the most likely class: of the first letters,
// and of all where these leave doubt.
func (s *scratch) score(c *ngram.Classifier, letters []rune) (class string, p float64) {
	var sums [ngram.MaxClasses]int32
	grams := 0
	for len(letters) > 0 && p < quickConfidence {
		part := letters[:min(quickWindow, len(letters))]
		letters = letters[len(part):]
		s.grams = c.Shape.Grams(s.grams[:0], part)
		c.Sum(&sums, s.grams)
		grams += len(s.grams)
		s.probs = c.Probabilities(s.probs[:0], &sums, grams)
		class, p = s.best(c)
	}
	return class, p
}

// best is the most likely class. The other languages are one.
func (s *scratch) best(c *ngram.Classifier) (class string, p float64) {
	rest := 0.0
	for i, q := range s.probs {
		switch {
		case c.Classes[i] == Other:
			rest += q
		case q > p:
			class, p = c.Classes[i], q
		}
	}
	if rest > p {
		return Other, rest
	}
	return class, p
}

// sumOf adds up the probabilities of some classes in what the classifier just said.
func (s *scratch) sumOf(c *ngram.Classifier, classes []string) (p float64) {
	for i, q := range s.probs {
		if slices.Contains(classes, c.Classes[i]) {
			p += q
		}
	}
	return min(p, 1)
}

// named makes a result of a class's name.
func named(class string, script ngram.Script, p float64) Result {
	switch class {
	case "zh-Hans":
		return Result{"zh", "Hans", p}
	case "zh-Hant":
		return Result{"zh", "Hant", p}
	case "ja":
		return Result{"ja", "Jpan", p}
	}
	return Result{class, script.String(), p}
}
