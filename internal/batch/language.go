package batch

import (
	"hash/fnv"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"kumo/internal/lang"
)

const (
	leastStretch = 120    // bytes of text whose language is told at once: enough to tell it
	mostStretch  = 1 << 9 // of a paragraph, which is longer: all of it is looked at
	stretches    = 64     // of a page, at most
)

const (
	someText = 100 // bytes of a main text that tell more than what else is on the page
	guessed  = 0.5 // the confidence of what few words, or a declaration, say
)

// pageLanguage is languageOf a page's main text. Where that is short or in no known language, it is what first words
// and declaration say, which is a guess; "" is a page without words enough for one.
func pageLanguage(text, first string) (language string, share, confidence float32) {
	language, share, confidence = languageOf(text)
	switch known := first != "" && first != lang.Other; {
	case language == "" && !known:
		return "", 0, 0
	case known && (len(text) < someText || language == lang.Other):
		return first, 1, guessed
	}
	return language, share, confidence
}

// languageOf is the language that most of a text is in, which share of the text that is, and how sure it is. A text is
// judged by stretches of whole paragraphs, so that a page in two languages has both counted. "" is a text without
// letters.
func languageOf(text string) (language string, share, confidence float32) {
	sizes, sure := map[string]int{}, map[string]float64{}
	all := 0
	for n := 0; n < stretches && text != ""; n++ {
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
	for end < leastStretch && end < len(text) {
		next := strings.IndexByte(text[end:], '\n') + 1
		if next == 0 {
			next = len(text) - end
		}
		if next > mostStretch {
			if end > 0 {
				break
			}
			for next = mostStretch; next < len(text) && !utf8.RuneStart(text[next]); {
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
	var votes [64]int32
	var window [shingle]rune
	n := 0
	h := fnv.New64a()
	var buf [shingle * utf8.UTFMax]byte
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		copy(window[:], window[1:])
		window[shingle-1] = unicode.ToLower(r)
		if n++; n < shingle {
			continue
		}
		b := buf[:0]
		for _, w := range window {
			b = utf8.AppendRune(b, w)
		}
		h.Reset()
		_, _ = h.Write(b) // never fails
		sum := mix(h.Sum64())
		for i := range votes {
			votes[i] += int32(sum>>i&1)*2 - 1
		}
	}
	if n < shingle {
		return 0
	}
	var sum uint64
	for i, v := range votes {
		if v > 0 {
			sum |= 1 << i
		}
	}
	return sum
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
