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

// MaxWord is how long a word can be, in bytes; longer ones are not found.
const MaxWord = 64

// A Word is one of a text.
type Word struct {
	Term     string
	From, To int  // where it stands in the text
	Prefix   bool // of a query: it stands for all words that begin so
	tail     bool // of a query: the last letter of a run
}

// A Splitter finds words. It remembers stems; one goroutine uses it.
type Splitter struct {
	// Only are the letters with which words begin that are wanted, small ones; others may be left out, which saves
	// stemming them. nil: all are wanted.
	Only map[rune]bool

	stems map[string]map[string]string // by language
	env   environment
	marks []int // of a run: where letters begin, and where the last ends
}

// Split calls f with the words of a text in a language, "" if it is not known, until f has enough.
func (s *Splitter) Split(text, lang string, f func(Word) bool) { s.split(text, lang, false, f) }

// Query are the words of what is looked for: those of which a text has the same where it has what is looked for. What
// ends a run within it does so in the text; behind its last letter the text may go on.
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

// isUnwanted reports whether a word that begins with a letter cannot be one that is wanted: where stemmers leave
// beginnings alone.
func (s *Splitter) isUnwanted(first rune, lang string) bool {
	if first >= utf8.RuneSelf && (first < 0x410 || first > 0x44F) || lang == "ar" || lang == "ga" {
		return false
	}
	if first == 'й' || first == 'Й' { // which fold makes another letter
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

// isInvisible is true of what may stand in a word and is not seen: soft hyphens, joiners.
func isInvisible(r rune) bool { return r == 0xAD || r == 0x200C || r == 0x200D }

// isUnspaced is true of letters of scripts without spaces, and of Korean ones.
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

// isCombining is true of what belongs to the letter before it: marks, those of narrow kana, and what ends a syllable of
// Hangul that is written in its parts. What is made of these by NFKC is one letter.
func isCombining(r rune) bool {
	return unicode.IsMark(r) || r == 0xFF9E || r == 0xFF9F || r >= 0x1160 && r <= 0x11FF
}

// run finds where the letters of a run of dense ones begin.
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

// bigrams tells the pairs of letters of a run, and its last letter alone, so that each letter begins a word.
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

// term is a word as it is looked up; "" if it is none.
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

// maxStems are remembered of a language.
const maxStems = 1 << 15

// normalize is a word in small letters, whole ones, without what is not seen.
func normalize(word string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if isInvisible(r) || r == 0x640 || r == utf8.RuneError { // 640 only makes Arabic words wider
			return -1
		}
		switch r = unicode.ToLower(r); r {
		case 'ё': // which most write е, and the stemmer knows as that
			return 'е'
		case 'ς': // σ at a word's end
			return 'σ'
		}
		return r
	}, norm.NFKC.String(word)))
}

// stripAccents takes accents away where a script does without them.
func stripAccents(word string) string {
	first, _ := utf8.DecodeRuneInString(word)
	if first < utf8.RuneSelf && isASCII(word) || !mayHaveAccents(first) {
		return word
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r == 'ي', r == 'ى': // one letter, of which languages have their own forms
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

// mayHaveAccents is true of Latin, Greek, Cyrillic, Hebrew and Arabic letters.
func mayHaveAccents(r rune) bool { return r < 0x700 || r >= 0x1E00 && r < 0x2000 }
