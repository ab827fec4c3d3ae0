package ngram

import (
	"sort"
	"unicode/utf8"
)

// Script is a writing system. Kana is a script of its own, because Han with kana is Japanese, but Han alone may also be
// Chinese.
type Script uint8

// The known scripts. No known language is written in those after Laoo.
const (
	Zyyy    Script = iota // everything without a script: digits, punctuation, symbols
	Zinh                  // marks with the script of their base letter
	Latn                  // Latin
	Cyrl                  // Cyrillic
	Arab                  // Arabic
	Deva                  // Devanagari
	Hani                  // Han
	Kana                  // Hiragana and Katakana
	Hang                  // Hangul
	Tibt                  // Tibetan
	Mymr                  // Burmese
	Laoo                  // Lao
	Thai                  // Thai
	Grek                  // Greek
	Hebr                  // Hebrew
	Armn                  // Armenian
	Geor                  // Georgian
	Beng                  // Bengali
	Guru                  // Gurmukhi
	Gujr                  // Gujarati
	Orya                  // Odia
	Taml                  // Tamil
	Telu                  // Telugu
	Knda                  // Kannada
	Mlym                  // Malayalam
	Sinh                  // Sinhala
	Khmr                  // Khmer
	Ethi                  // Ethiopic
	Mong                  // Mongolian, the vertical script
	Syrc                  // Syriac
	Thaa                  // Thaana
	Nkoo                  // N'Ko
	Cher                  // Cherokee
	Cans                  // Canadian syllabics
	Tfng                  // Tifinagh
	Olck                  // Ol Chiki
	Mtei                  // Meitei
	Java                  // Javanese
	Yiii                  // Yi
	Bopo                  // Bopomofo
	Scripts               // number of scripts
)

var names = [Scripts]string{"Zyyy", "Zinh", "Latn", "Cyrl", "Arab", "Deva", "Hani", "Hira", "Hang", "Tibt", "Mymr",
	"Laoo", "Thai",
	"Grek", "Hebr", "Armn", "Geor", "Beng", "Guru", "Gujr", "Orya", "Taml", "Telu", "Knda", "Mlym", "Sinh", "Khmr", "Ethi",
	"Mong",
	"Syrc", "Thaa", "Nkoo", "Cher", "Cans", "Tfng", "Olck", "Mtei", "Java", "Yiii", "Bopo"}

// String returns the ISO 15924 code.
func (s Script) String() string { return names[s] }

type span struct {
	lo, hi rune
	script Script
}

// spans are the letters and their vowel signs, in order. Code points in between have no script. Optional marks (Arabic
// vowels, tatweel, stress) are Zinh and are ignored.
var spans = []span{
	{'A', 'Z', Latn}, {'a', 'z', Latn}, {0xC0, 0xD6, Latn}, {0xD8, 0xF6, Latn}, {0xF8, 0x2AF, Latn},
	{0x300, 0x36F, Zinh}, {0x370, 0x373, Grek}, {0x376, 0x377, Grek}, {0x37B, 0x37D, Grek}, {0x386, 0x386, Grek},
	{0x388, 0x3FF, Grek},
	{0x400, 0x481, Cyrl}, {0x483, 0x489, Zinh}, {0x48A, 0x52F, Cyrl}, {0x531, 0x556, Armn}, {0x561, 0x587, Armn},
	{0x591, 0x5C7, Zinh}, {0x5D0, 0x5F2, Hebr},
	{0x620, 0x63F, Arab}, {0x640, 0x640, Zinh}, {0x641, 0x64A, Arab}, {0x64B, 0x65F, Zinh}, {0x66E, 0x66F, Arab},
	{0x670, 0x670, Zinh},
	{0x671, 0x6D3, Arab}, {0x6D5, 0x6D5, Arab}, {0x6D6, 0x6ED, Zinh}, {0x6EE, 0x6EF, Arab}, {0x6FA, 0x6FF, Arab},
	{0x710, 0x74F, Syrc}, {0x750, 0x77F, Arab}, {0x780, 0x7B1, Thaa}, {0x7CA, 0x7F5, Nkoo}, {0x8A0, 0x8C9, Arab},
	{0x8D3, 0x8FF, Zinh},
	{0x900, 0x963, Deva}, {0x971, 0x97F, Deva}, {0x980, 0x9E3, Beng}, {0x9F0, 0x9F1, Beng}, {0xA01, 0xA5E, Guru},
	{0xA70, 0xA75, Guru},
	{0xA81, 0xAE3, Gujr}, {0xB01, 0xB63, Orya}, {0xB71, 0xB71, Orya}, {0xB82, 0xBD7, Taml}, {0xC00, 0xC63, Telu},
	{0xC80, 0xCE3, Knda},
	{0xD00, 0xD63, Mlym}, {0xD7A, 0xD7F, Mlym}, {0xD81, 0xDDF, Sinh}, {0xE01, 0xE3A, Thai}, {0xE40, 0xE4E, Thai},
	{0xE81, 0xECD, Laoo}, {0xEDC, 0xEDF, Laoo}, {0xF00, 0xF00, Tibt}, {0xF18, 0xF19, Tibt}, {0xF35, 0xF39, Tibt},
	{0xF3E, 0xFBC, Tibt},
	{0x1000, 0x103F, Mymr}, {0x1050, 0x108F, Mymr}, {0x109A, 0x109F, Mymr}, {0x10A0, 0x10FF, Geor}, {0x1100, 0x11FF, Hang},
	{0x1200, 0x135A, Ethi}, {0x1380, 0x138F, Ethi}, {0x13A0, 0x13FD, Cher}, {0x1401, 0x167F, Cans}, {0x1780, 0x17D3, Khmr},
	{0x1820, 0x18AA, Mong}, {0x1AB0, 0x1AFF, Zinh}, {0x1C5A, 0x1C7D, Olck}, {0x1C80, 0x1C88, Cyrl}, {0x1C90, 0x1CBF, Geor},
	{0x1DC0, 0x1DFF, Zinh}, {0x1E00, 0x1EFF, Latn}, {0x1F00, 0x1FFC, Grek}, {0x200D, 0x200D, Zinh}, {0x2C60, 0x2C7F, Latn},
	{0x2D00, 0x2D2D, Geor}, {0x2D30, 0x2D7F, Tfng}, {0x2D80, 0x2DDE, Ethi}, {0x2DE0, 0x2DFF, Cyrl}, {0x3005, 0x3007, Hani},
	{0x3041, 0x3096, Kana}, {0x309D, 0x309F, Kana}, {0x30A1, 0x30FA, Kana}, {0x30FC, 0x30FF, Kana}, {0x3105, 0x312F, Bopo},
	{0x3131, 0x318E, Hang}, {0x31A0, 0x31BF, Bopo}, {0x31F0, 0x31FF, Kana}, {0x3400, 0x4DBF, Hani}, {0x4E00, 0x9FFF, Hani},
	{0xA000, 0xA48C, Yiii}, {0xA640, 0xA69F, Cyrl}, {0xA722, 0xA7FF, Latn}, {0xA960, 0xA97C, Hang}, {0xA980, 0xA9C0, Java},
	{0xA9E0, 0xA9FE, Mymr}, {0xAA60, 0xAA7F, Mymr}, {0xAAE0, 0xAAF6, Mtei}, {0xAB30, 0xAB64, Latn}, {0xABC0, 0xABED, Mtei},
	{0xAC00, 0xD7A3, Hang}, {0xD7B0, 0xD7FB, Hang}, {0xF900, 0xFAD9, Hani}, {0xFB1D, 0xFB4F, Hebr}, {0xFB50, 0xFBB1, Arab},
	{0xFBD3, 0xFD3D, Arab}, {0xFD50, 0xFDFB, Arab}, {0xFE70, 0xFEFC, Arab}, {0xFF21, 0xFF3A, Latn}, {0xFF41, 0xFF5A, Latn},
	{0xFF66, 0xFF9F, Kana}, {0x20000, 0x323AF, Hani},
}

// asciiLetter is 1 for the letters of ASCII, which are Latin; its other characters have no script.
var asciiLetter = func() (is [utf8.RuneSelf]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		is[c], is[c-0x20] = 1, 1
	}
	return is
}()

// low caches the scripts of the letters below the Han range, which are scattered over many spans.
var low = func() (table [0x3000]Script) {
	for _, s := range spans {
		for r := s.lo; r <= s.hi && int(r) < len(table); r++ {
			table[r] = s.script
		}
	}
	return table
}()

// Of returns the script of a letter, or Zyyy if it is not a letter.
func Of(r rune) Script {
	switch {
	case uint32(r) < uint32(len(low)):
		return low[r]
	case r >= 0x4E00 && r <= 0x9FFF:
		return Hani
	case r >= 0xAC00 && r <= 0xD7A3:
		return Hang
	}
	if i := sort.Search(len(spans), func(i int) bool { return spans[i].hi >= r }); i < len(spans) && spans[i].lo <= r {
		return spans[i].script
	}
	return Zyyy
}

// Census counts the bytes of text that are letters of each script. It counts bytes because a Han letter is worth about
// three Latin letters.
func Census(text []byte) (count [Scripts]int) {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			begin, letters := i, 0 // of the run of ASCII
			for ; i < len(text) && text[i] < utf8.RuneSelf; i++ {
				letters += int(asciiLetter[text[i]])
			}
			count[Latn] += letters
			count[Zyyy] += i - begin - letters
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		count[Of(r)] += n
		i += n
	}
	return count
}
