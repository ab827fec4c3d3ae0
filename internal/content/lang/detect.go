package lang

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"kumo/internal/content/lang/ngram"
)

//go:generate go run ./train -corpus $KUMO_LANG_CORPUS -out model.bin

//go:embed model.bin
var packed string

// classifiers has the classifiers of the model by script. They are unpacked at the first use, which takes some
// hundredths of a second.
var classifiers = sync.OnceValue(func() (by [ngram.Scripts]script) {
	m, err := ngram.Read(strings.NewReader(packed))
	if err != nil {
		panic("lang: the embedded model: " + err.Error()) // the binary is broken; a test reads the model
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

// A script has a classifier for its known languages, if there are several, and finer classifiers for closely related
// languages.
type script struct {
	*ngram.Classifier
	finer []*ngram.Classifier
}

// Other is the result for a text in none of the known languages, or without language.
const Other = "other"

// maxShort is the number of bytes up to which a text may be too short for a statement: code, addresses, labels.
const maxShort = 128

// hasWords reports whether at least half of the parts of a text between spaces are words of two letters or more.
func hasWords(text []byte) bool {
	words, parts := 0, 0
	for part := range bytes.FieldsSeq(text) {
		parts++
		part = bytes.TrimFunc(part, unicode.IsPunct)
		letters, others := 0, 0
		for _, r := range string(part) {
			switch {
			case unicode.IsLetter(r), unicode.IsMark(r):
				letters++
			case r != '\'' && r != '’' && r != '-' && r != '\u00AD':
				others++
			}
		}
		if letters >= 2 && others == 0 {
			words++
		}
	}
	return 2*words >= parts
}

// A Result is the detected language of a text.
type Result struct {
	Lang       string  // ISO 639-1, otherwise ISO 639-3; or Other
	Script     string  // ISO 15924; Hans or Hant for Chinese, Jpan, Kore; Zyyy without letters
	Confidence float64 // estimated probability, 0 to 1; 0 without letters
}

const (
	prefix = 4 << 10 // maximum number of bytes that are read
	window = 1 << 9  // maximum number of letters that are scored

	// The first letters usually suffice; the rest is scored only if the confidence is lower than this.
	quickWindow     = window / 2
	quickConfidence = 0.97
)

// Detect detects the language of a text from its first 4 KiB. Invalid UTF-8 counts as spaces. Detect is safe for
// concurrent use.
func Detect[T ~string | ~[]byte](text T) Result {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.text = append(s.text[:0], text[:min(prefix, len(text))]...)
	return s.detect()
}

// A scratch is the working memory of a detection.
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
	case most == ngram.Latn && len(s.text) <= maxShort && !hasWords(s.text):
		return Result{Lang: Other, Script: most.String()}
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

// classify returns the most likely class of a text in a script, and its probability.
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

// score computes the class probabilities of the letters in probs and returns the most likely class. It uses the first
// letters, and the rest only if the result is not clear.
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

// best returns the most likely class. The classes of other languages count as one.
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

// sumOf adds up the probabilities of some classes in the last result of score.
func (s *scratch) sumOf(c *ngram.Classifier, classes []string) (p float64) {
	for i, q := range s.probs {
		if slices.Contains(classes, c.Classes[i]) {
			p += q
		}
	}
	return min(p, 1)
}

// named returns the result for a class.
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
