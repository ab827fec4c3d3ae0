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
	minStretch   = 120    // bytes of text whose language is told at once: enough to tell it
	maxStretch   = 1 << 9 // of a paragraph, which is longer: all of it is looked at
	maxStretches = 64     // of a page, at most
)

const (
	minText         = 100 // bytes of a main text that tell more than what else is on the page
	guessConfidence = 0.5 // the confidence of what few words, or a declaration, say
)

// pageLanguage is languageOf a page's main text. Where that is short or in no known language, it is what first words
// and declaration say, which is a guess; "" is a page without words enough for one.
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

// languageOf is the language that most of a text is in, which share of the text that is, and how sure it is. A text is
// judged by stretches of whole paragraphs, so that a page in two languages has both counted. "" is a text without
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

// cutStretch cuts a stretch off a text: paragraphs until there is enough, or a part of a long one.
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

// shingle is how many letters in a row are a feature of a text: few enough for languages without spaces.
const shingle = 6

// simhash is a fingerprint of 64 bits: those of texts that are alike differ in few (Charikar, STOC 2002). Its features
// are runs of letters, whatever their case and whatever stands between them.
func simhash(text string) uint64 {
	var votes votes
	var window [shingle * utf8.UTFMax]byte // the last letters, as bytes
	var sizes [shingle]int                 // of each of them
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

// lowerLetter is a letter or digit in lower case; 0 for what is neither.
func lowerLetter(r rune) rune {
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return 0
	}
	return unicode.ToLower(r)
}

// lowerTable is lowerLetter of the basic plane, to whose letters nothing else is lower case.
var lowerTable = sync.OnceValue(func() *[1 << 16]uint16 {
	var all [1 << 16]uint16
	for r := range all {
		all[r] = uint16(lowerLetter(rune(r)))
	}
	return &all
})

// votes count, for each of 64 bits, in how many hashes it is set. Eight bits are counted at once, in the bytes of a
// number, which are emptied into sums before they overflow.
type votes struct {
	bytes [8]uint64 // byte j of number i counts bit 8j+i
	sums  [64]uint32
	n     uint32 // hashes
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

// majority has the bits that are set in more than half of the hashes.
func (v *votes) majority() (sum uint64) {
	v.empty()
	for i, set := range v.sums {
		if 2*set > v.n {
			sum |= 1 << i
		}
	}
	return sum
}

// fnv1a is the hash FNV-1a of 64 bits, for bytes too few to be worth a hash.Hash.
func fnv1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// mix spreads what little of FNV's high bits short inputs reach.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h * 0xc4ceb9fe1a85ec53
}

// Differ is how many bits of two simhashes differ.
func Differ(a, b uint64) int { return bits.OnesCount64(a ^ b) }
