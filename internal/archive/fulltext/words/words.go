// Package words splits text into index terms: lowercase, without accents, and stemmed if the language has a stemmer.
// The stemmers are those of Snowball, based on Porter, "An algorithm for suffix stripping" (1980).
//
// Some scripts have no spaces between words (Chinese, Japanese, Lao, Burmese, Thai, Khmer). For these and for Korean,
// each pair of adjacent letters is a term, as in Lucene's CJK analyzer. Any part of such a text can be found as a
// phrase of pairs.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxWord is the maximum length of a word in bytes. Longer words are not found.
const MaxWord = 64

// A Word is a word of a text.
type Word struct {
	Term     string
	From, To int  // offsets in the text
	Prefix   bool // in a query: matches all words that begin with Term
	tail     bool // in a query: the last letter of a run
}

// A Splitter finds words. It caches stems, and is not safe for concurrent use.
type Splitter struct {
	// Only has the lower-case first letters of the words that are needed. Other words may be omitted, which saves
	// stemming them. nil: all words are needed.
	Only map[rune]bool

	stems map[string]map[string]string // by language
	env   environment
	marks []int // of a run: the offsets of its letters, and its end
}

// Split calls f with the words of a text until f returns false. lang is the language, "" if unknown.
func (s *Splitter) Split(text, lang string, f func(Word) bool) { s.split(text, lang, false, f) }

// Query returns the words of a query. A text that contains the query has these words in the same order. The end of a
// run inside the query is also one in the text; after the last letter, the run may continue in the text.
func (s *Splitter) Query(text, lang string) (all []Word) {
	s.split(text, lang, true, func(w Word) bool { all = append(all, w); return true })
	last := len(all) - 1
	for i := range max(last, 0) {
		all[i].Prefix = false
	}
	if last >= 0 && all[last].tail {
		all = all[:last]
	}
	return all
}

func (s *Splitter) split(text, lang string, query bool, f func(Word) bool) {
	for at := 0; at < len(text); {
		r, n := decode(text[at:])
		switch {
		case isUnspaced(r):
			end := s.run(text, at)
			if !s.bigrams(text, query, f) {
				return
			}
			at = end
		case isWord(r):
			end := at + n
			ascii := r < utf8.RuneSelf
			for end < len(text) {
				r, n := decode(text[end:])
				if !(isWord(r) || isInvisible(r)) || isUnspaced(r) {
					break
				}
				ascii = ascii && r < utf8.RuneSelf
				end += n
			}
			if s.Only != nil && s.isUnwanted(r, lang) {
				at = end
				continue
			}
			if term := s.term(text[at:end], lang, ascii); term != "" && !f(Word{Term: term, From: at, To: end}) {
				return
			}
			at = end
		default:
			at += n
		}
	}
}

// isUnwanted reports whether a word with this first letter cannot be needed, if stemmers keep first letters.
func (s *Splitter) isUnwanted(first rune, lang string) bool {
	if first >= utf8.RuneSelf && (first < 0x410 || first > 0x44F) || lang == "ar" || lang == "ga" {
		return false
	}
	if first == 'й' || first == 'Й' { // stripAccents maps it to another letter
		return false
	}
	return !s.Only[unicode.ToLower(first)]
}

func decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)
}

// isInvisible reports whether a character may be in a word and is invisible: soft hyphens, joiners.
func isInvisible(r rune) bool { return r == 0xAD || r == 0x200C || r == 0x200D }

// isUnspaced reports whether a letter is of a script without spaces, or Korean.
func isUnspaced(r rune) bool {
	switch {
	case r < 0xE00:
		return false
	case r <= 0xEFF, r >= 0x1000 && r <= 0x109F, r >= 0x1780 && r <= 0x17FF: // Thai, Lao; Burmese; Khmer
		return unicode.IsLetter(r) || unicode.IsMark(r)
	case r < 0x3005:
		return r >= 0x1100 && r <= 0x11FF
	case r <= 0x3007, r >= 0x3041 && r <= 0x309E && r != 0x309B && r != 0x309C, r >= 0x30A1 && r <= 0x30FF && r != 0x30FB,
		r >= 0x31F0 && r <= 0x31FF,
		r >= 0x3400 && r <= 0x4DBF, r >= 0x4E00 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3, r >= 0xF900 && r <= 0xFAFF,
		r >= 0xFF66 && r <= 0xFF9F, r >= 0x20000 && r <= 0x3FFFF:
		return true
	}
	return false
}

// isCombining reports whether a character belongs to the letter before it: marks, also those of halfwidth kana, and
// vowels and final consonants of decomposed Hangul. NFKC composes them to one letter.
func isCombining(r rune) bool {
	return unicode.IsMark(r) || r == 0xFF9E || r == 0xFF9F || r >= 0x1160 && r <= 0x11FF
}

// run finds the letters of a run of unspaced letters.
func (s *Splitter) run(text string, at int) (end int) {
	s.marks = s.marks[:0]
	for at < len(text) {
		r, n := utf8.DecodeRuneInString(text[at:])
		if !isUnspaced(r) {
			break
		}
		if len(s.marks) == 0 || !isCombining(r) {
			s.marks = append(s.marks, at)
		}
		at += n
	}
	s.marks = append(s.marks, at)
	return at
}

// bigrams calls f with the pairs of adjacent letters in a run, and its last letter alone, so that each letter begins a
// word.
func (s *Splitter) bigrams(text string, query bool, f func(Word) bool) bool {
	letters := len(s.marks) - 1
	for i := range letters {
		from, to := s.marks[i], s.marks[min(i+2, letters)]
		w := Word{Term: norm.NFKC.String(text[from:to]), From: from, To: to, Prefix: query && letters == 1,
			tail: query && letters > 1 && i == letters-1}
		if len(w.Term) <= MaxWord && !f(w) {
			return false
		}
	}
	return true
}

// term returns the index term of a word; "" if it is not a word.
func (s *Splitter) term(word, lang string, ascii bool) string {
	if len(word) > 2*MaxWord {
		return ""
	}
	if ascii {
		word = strings.ToLower(word)
	} else if word = normalize(word); word == "" {
		return ""
	}
	if stem, has := stemmers[lang]; has && word[0] > '9' {
		known, has := s.stems[lang]
		if !has || len(known) > maxStems {
			if known = map[string]string{}; s.stems == nil {
				s.stems = map[string]map[string]string{}
			}
			s.stems[lang] = known
		}
		stemmed, has := known[word]
		if !has {
			own := strings.Clone(word)
			stemmed = stripAccents(s.env.stem(stem, own))
			known[own] = stemmed
		}
		word = stemmed
	} else if !ascii {
		word = stripAccents(word)
	}
	if len(word) > MaxWord {
		return ""
	}
	return word
}

// maxStems limits the cached stems of a language.
const maxStems = 1 << 15

// normalize returns a word in lower case, in composed form, without invisible characters.
func normalize(word string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if isInvisible(r) || r == 0x640 || r == utf8.RuneError { // U+0640 only stretches Arabic words
			return -1
		}
		switch r = unicode.ToLower(r); r {
		case 'ё': // usually written as е, which the stemmer expects
			return 'е'
		case 'ς': // σ at the end of a word
			return 'σ'
		}
		return r
	}, norm.NFKC.String(word)))
}

// stripAccents removes accents, if the script can be written without them.
func stripAccents(word string) string {
	first, _ := utf8.DecodeRuneInString(word)
	if first < utf8.RuneSelf && isASCII(word) || !mayHaveAccents(first) {
		return word
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r == 'ي', r == 'ى': // one letter with different forms in several languages
			return 'ی'
		case r == 'ك':
			return 'ک'
		case r == 'ß':
			return 's'
		case r == 'ı':
			return 'i'
		case r == 'ø':
			return 'o'
		case r == 'ł':
			return 'l'
		case r == 'đ':
			return 'd'
		}
		return r
	}, norm.NFD.String(word)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mayHaveAccents reports whether a letter is Latin, Greek, Cyrillic, Hebrew or Arabic.
func mayHaveAccents(r rune) bool { return r < 0x700 || r >= 0x1E00 && r < 0x2000 }
