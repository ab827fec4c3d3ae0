package batch

import (
	"math"
	"math/bits"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"kumo/internal/content/lang"
)

const (
	minStretch   = 120    // bytes of text that suffice to detect a language
	maxStretch   = 1 << 9 // bytes of a paragraph; longer ones are split
	maxStretches = 64     // maximum per page
)

const (
	minText         = 100 // bytes of main text that are more reliable than the rest of the page
	guessConfidence = 0.5 // confidence of few words, or of a declared language
)

// pageLanguage returns languageOf of a page's main text. If that is short or its language unknown, the result is a
// guess from the first words or the declared language. It is "" if the page has too few words.
func pageLanguage(text, first string) (language string, share, confidence float32) {
	language, share, confidence = languageOf(text)
	switch known := first != "" && first != lang.Other; {
	case language == "" && !known:
		return "", 0, 0
	case known && (len(text) < minText || language == lang.Other):
		return first, 1, guessConfidence
	}
	return language, share, confidence
}

// languageOf returns the language of most of a text, its share of the text, and the confidence. Whole paragraphs are
// detected one after the other, so that both languages of a bilingual page count. The result is "" for a text without
// letters.
func languageOf(text string) (language string, share, confidence float32) {
	sizes, sure := map[string]int{}, map[string]float64{}
	all := 0
	for n := 0; n < maxStretches && text != ""; n++ {
		var part string
		part, text = cutStretch(text)
		r := lang.Detect(part)
		if r.Confidence == 0 {
			continue
		}
		sizes[r.Lang] += len(part)
		sure[r.Lang] += r.Confidence * float64(len(part))
		all += len(part)
	}
	most := 0
	for l, size := range sizes {
		if size > most || size == most && l < language {
			language, most = l, size
		}
	}
	if most == 0 {
		return "", 0, 0
	}
	return language, float32(most) / float32(all), float32(sure[language] / float64(most))
}

// cutStretch splits a part off a text: several short paragraphs, or a piece of a long one.
func cutStretch(text string) (part, rest string) {
	end := 0
	for end < minStretch && end < len(text) {
		next := strings.IndexByte(text[end:], '\n') + 1
		if next == 0 {
			next = len(text) - end
		}
		if next > maxStretch {
			if end > 0 {
				break
			}
			for next = maxStretch; next < len(text) && !utf8.RuneStart(text[next]); {
				next++
			}
		}
		end += next
	}
	return text[:end], text[end:]
}

// shingle is the number of consecutive letters in a feature, small enough for languages without spaces.
const shingle = 6

// simhash returns a fingerprint of 64 bits; similar texts differ in few bits (Charikar, STOC 2002). Features are runs
// of letters, ignoring case and the characters between them.
func simhash(text string) uint64 {
	var votes votes
	var window [shingle * utf8.UTFMax]byte // the last letters, as bytes
	var sizes [shingle]int                 // of each letter
	end, n := 0, 0
	lower := lowerTable()
	for _, r := range text {
		if int(r) < len(lower) {
			r = rune(lower[r])
		} else {
			r = lowerLetter(r)
		}
		if r == 0 {
			continue
		}
		if sizes[0] > 0 {
			copy(window[:], window[sizes[0]:end])
			end -= sizes[0]
		}
		copy(sizes[:], sizes[1:])
		sizes[shingle-1] = utf8.EncodeRune(window[end:], r)
		end += sizes[shingle-1]
		if n++; n >= shingle {
			votes.add(mix(fnv1a(window[:end])))
		}
	}
	return votes.majority()
}

// lowerLetter returns a letter or digit in lower case; 0 for other characters.
func lowerLetter(r rune) rune {
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return 0
	}
	return unicode.ToLower(r)
}

// lowerTable contains lowerLetter of the basic plane. No letter outside has a lower case in it.
var lowerTable = sync.OnceValue(func() *[1 << 16]uint16 {
	var all [1 << 16]uint16
	for r := range all {
		all[r] = uint16(lowerLetter(rune(r)))
	}
	return &all
})

// votes counts, for each of 64 bits, the hashes in which it is set. The bytes of a number count eight bits at once;
// they are added to sums before they overflow.
type votes struct {
	bytes [8]uint64 // byte j of number i counts bit 8j+i
	sums  [64]uint32
	n     uint32 // number of hashes
}

func (v *votes) add(hash uint64) {
	for i := range v.bytes {
		v.bytes[i] += hash >> i & 0x0101010101010101
	}
	if v.n++; v.n%math.MaxUint8 == 0 {
		v.empty()
	}
}

func (v *votes) empty() {
	for i := range v.bytes {
		for j := range 8 {
			v.sums[8*j+i] += uint32(v.bytes[i] >> (8 * j) & math.MaxUint8)
		}
		v.bytes[i] = 0
	}
}

// majority returns the bits that are set in more than half of the hashes.
func (v *votes) majority() (sum uint64) {
	v.empty()
	for i, set := range v.sums {
		if 2*set > v.n {
			sum |= 1 << i
		}
	}
	return sum
}

// fnv1a is the 64-bit FNV-1a hash; a hash.Hash would be slow for a few bytes.
func fnv1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// mix spreads the entropy of short inputs over FNV's high bits.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h * 0xc4ceb9fe1a85ec53
}

// Differ returns the number of bits in which two simhashes differ.
func Differ(a, b uint64) int { return bits.OnesCount64(a ^ b) }
