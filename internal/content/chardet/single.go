package chardet

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// A table maps the bytes from 0x80 on to characters.
type table [128]rune

// A singleByte is a single-byte charset.
type singleByte struct {
	name   string
	table  table
	prior  float64 // cost of the charset in bits, independent of the text
	groups []string
}

func charmapTable(m *charmap.Charmap) (t table) {
	for i := range t {
		t[i] = m.DecodeByte(byte(0x80 + i))
	}
	return t
}

// singleBytes returns the single-byte charsets. If two decode a text identically, the prior decides. The Web's charsets
// come first. ISO 8859 comes before the windows charset with more characters, because a text in the latter would
// usually contain one of these.
func singleBytes() []singleByte {
	return []singleByte{
		{"windows-1252", charmapTable(charmap.Windows1252), 0, []string{"western", "celtic"}},
		{"iso-8859-15", charmapTable(charmap.ISO8859_15), 4, []string{"western"}},
		{"macintosh", charmapTable(charmap.Macintosh), 10, []string{"western"}},
		{"windows-1250", charmapTable(charmap.Windows1250), 4, []string{"central", "romanian"}},
		{"iso-8859-2", charmapTable(charmap.ISO8859_2), 3.5, []string{"central", "romanian"}},
		{"ibm852", charmapTable(charmap.CodePage852), 12, []string{"central"}},
		{"iso-8859-16", charmapTable(charmap.ISO8859_16), 9, []string{"romanian", "central"}},
		{"windows-1257", charmapTable(charmap.Windows1257), 4, []string{"baltic"}},
		{"iso-8859-13", charmapTable(charmap.ISO8859_13), 5, []string{"baltic"}},
		{"iso-8859-4", charmapTable(charmap.ISO8859_4), 6, []string{"baltic"}},
		{"iso-8859-10", charmapTable(charmap.ISO8859_10), 9, []string{"baltic"}},
		{"windows-1254", charmapTable(charmap.Windows1254), 3, []string{"turkish"}},
		{"iso-8859-3", charmapTable(charmap.ISO8859_3), 6, []string{"southern", "turkish"}},
		{"iso-8859-14", charmapTable(charmap.ISO8859_14), 12, []string{"celtic"}},
		{"windows-1258", charmapTable(charmap.Windows1258), 5, []string{"vietnamese"}},
		{"viscii", visciiTable(), 7, []string{"vietnamese"}},
		{"windows-1251", charmapTable(charmap.Windows1251), 3, []string{"cyrillic"}},
		{"koi8-r", charmapTable(charmap.KOI8R), 4, []string{"cyrillic"}},
		{"koi8-u", charmapTable(charmap.KOI8U), 5, []string{"cyrillic"}},
		{"iso-8859-5", charmapTable(charmap.ISO8859_5), 6, []string{"cyrillic"}},
		{"ibm866", charmapTable(charmap.CodePage866), 6, []string{"cyrillic"}},
		{"x-mac-cyrillic", charmapTable(charmap.MacintoshCyrillic), 7, []string{"cyrillic"}},
		{"ibm855", charmapTable(charmap.CodePage855), 8, []string{"cyrillic"}},
		{"windows-1253", charmapTable(charmap.Windows1253), 4, []string{"greek"}},
		{"iso-8859-7", charmapTable(charmap.ISO8859_7), 3.5, []string{"greek"}},
		{"windows-1255", charmapTable(charmap.Windows1255), 4, []string{"hebrew"}},
		{"iso-8859-8", charmapTable(charmap.ISO8859_8), 3.5, []string{"hebrew"}},
		{"windows-1256", charmapTable(charmap.Windows1256), 4, []string{"arabic"}},
		{"iso-8859-6", charmapTable(charmap.ISO8859_6), 4.5, []string{"arabic"}},
		{"windows-874", charmapTable(charmap.Windows874), 4, []string{"thai"}},
	}
}

// A model measures how well a text fits a charset and a language.
type model struct {
	name  string
	lang  string // of the sample
	prior float64
	table *table
	cells [256]cell
	pairs *pairs
}

// A cell describes a byte in a model.
type cell struct {
	letter uint8 // index in the alphabet of pairs; 0 if it is not in there
	flags  uint8
	bits   float32 // cost in bits if letter is 0
}

const (
	isLetter    = 1 << iota // of any alphabet
	isUpper                 // an upper-case letter
	isForeign               // a letter that is not Latin
	isHigh                  // not ASCII
	isCombining             // a combining mark of any script
	isMark                  // a symbol that does not occur within a word
)

// Costs in bits of characters that are not letters of the language.
const (
	commonBits  = 9  // common punctuation
	symbolBits  = 14 // other symbols
	foreignBits = 14 // letters of other languages
	controlBits = 25 // control characters
)

var singleModels = sync.OnceValue(func() (models []*model) {
	byLanguage := make(map[string]*pairs)
	texts := samples()
	for _, s := range singleBytes() {
		for _, sample := range texts {
			if !slices.Contains(s.groups, sample.group) {
				continue
			}
			key, text := sample.lang, sample.text
			if s.name == "windows-1258" {
				key, text = key+" decomposed", splitTones(text)
			}
			if byLanguage[key] == nil {
				byLanguage[key] = newPairs(text)
			}
			m := newModel(&s, byLanguage[key])
			m.lang = sample.lang
			models = append(models, m)
		}
	}
	return models
})

// splitTones converts Vietnamese to the form in windows-1258, where the five tone marks are separate characters.
func splitTones(text string) string {
	var out []rune
	for _, r := range text {
		var base, tone []rune
		for _, part := range norm.NFD.String(string(r)) {
			switch part {
			case 0x300, 0x301, 0x303, 0x309, 0x323:
				tone = append(tone, part)
			default:
				base = append(base, part)
			}
		}
		out = append(append(out, []rune(norm.NFC.String(string(base)))...), tone...)
	}
	return string(out)
}

func newModel(s *singleByte, p *pairs) *model {
	m := &model{name: s.name, prior: s.prior, table: &s.table, pairs: p}
	for i := range m.cells {
		r := rune(i)
		if i >= 0x80 {
			r = s.table[i-0x80]
		}
		m.cells[i] = newCell(r, i >= 0x80, p)
	}
	return m
}

func newCell(r rune, high bool, p *pairs) (c cell) {
	if high {
		c.flags |= isHigh
	}
	switch {
	case unicode.IsLetter(r) && r != 'ª' && r != 'º' || unicode.Is(unicode.Mn, r):
		c.flags |= isLetter
		if unicode.IsUpper(r) {
			c.flags |= isUpper
		}
		switch {
		case unicode.Is(unicode.Mn, r):
			c.flags |= isCombining
		case r >= 0x80 && !unicode.Is(unicode.Latin, r):
			c.flags |= isForeign
		}
		c.letter, c.bits = p.index[unicode.ToLower(r)], foreignBits
	case r < ' ' || r == unicode.ReplacementChar || 0x7F <= r && r < 0xA0:
		c.bits = controlBits
	case strings.ContainsRune(commonSymbols, r):
		c.bits = commonBits
	default:
		c.flags |= isMark
		c.bits = symbolBits
	}
	return c
}

// commonSymbols are symbols that are common in texts.
const commonSymbols = "\u00A0\u200C\u200D«»“”„‘’‚–—…•·°§©®€£№ªº²³½´،؛؟־׳״¡¿"

// bits returns the number of bits of a text in the model. It may stop when the number exceeds limit.
func (m *model) bits(gist []byte, limit float64) float64 {
	total := m.prior
	prev, before := &m.cells[' '], &m.cells[' ']
	for i, b := range gist {
		c := &m.cells[b]
		if (c.flags|prev.flags)&isHigh != 0 {
			total += m.pairs.bits(prev, c) + seamBits(before, prev, c)
		} else {
			total += asciiBits
		}
		before, prev = prev, c
		if i&63 == 0 && total > limit {
			break
		}
	}
	return total
}

// seamBits returns the extra cost of a letter for its position: upper case within a word, another script within a word,
// or a symbol within a word.
func seamBits(before, prev, c *cell) (bits float64) {
	both := prev.flags & c.flags & isLetter
	switch {
	case both != 0 && (prev.flags^c.flags)&isForeign != 0 && (prev.flags|c.flags)&isCombining == 0:
		bits += 8
	case (prev.flags^c.flags)&isLetter != 0 && (prev.flags|c.flags)&isMark != 0 && (prev.flags|c.flags)&isHigh != 0 &&
		highMark(prev, c):
		bits += 4
	}
	switch upper := c.flags & isUpper; {
	case upper != 0 && both == 0:
		bits += 3
	case upper != 0 && prev.flags&isUpper == 0:
		bits += 9
	case upper != 0:
		bits++
	case both != 0 && c.flags&isForeign != 0 && prev.flags&before.flags&isUpper != 0:
		bits += 5
	}
	return bits
}

// highMark reports whether the symbol of the two is not ASCII.
func highMark(prev, c *cell) bool {
	if c.flags&isMark != 0 {
		return c.flags&isHigh != 0
	}
	return prev.flags&isHigh != 0
}

// pairs has the cost in bits of each letter after each other letter of a language. Index 0 of the alphabet stands for
// everything that is not a letter.
type pairs struct {
	index map[rune]uint8
	table [][]float32
}

// newPairs builds the pairs from a sample text.
func newPairs(text string) *pairs {
	p := &pairs{index: make(map[rune]uint8)}
	var places []uint8
	places = append(places, 0)
	for _, r := range text {
		places = append(places, p.place(unicode.ToLower(r)))
	}
	n := len(p.index) + 1
	counts := make([][]float64, n)
	for i := range counts {
		counts[i] = make([]float64, n)
	}
	single, each := make([]float64, n), make([]float64, n)
	for i := 1; i < len(places); i++ {
		counts[places[i-1]][places[i]]++
		each[places[i-1]]++
		single[places[i]]++
	}
	p.fill(counts, each, single, float64(len(places)))
	return p
}

func (p *pairs) place(r rune) uint8 {
	if !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) {
		return 0
	}
	place, ok := p.index[r]
	if !ok {
		place = uint8(len(p.index) + 1)
		p.index[r] = place
	}
	return place
}

// fill converts counts to bits. The counts of pairs are smoothed with the frequency of the second letter, because the
// sample is short.
func (p *pairs) fill(counts [][]float64, each, single []float64, total float64) {
	p.table = make([][]float32, len(counts))
	for i := range counts {
		p.table[i] = make([]float32, len(counts))
		weight := each[i] / (each[i] + 20) // weight of the pair counts; grows with the size of the sample
		for j := range counts[i] {
			share := (1 - weight) * (single[j] + 0.3) / (total + 0.3*float64(len(counts)))
			if each[i] > 0 {
				share += weight * counts[i][j] / each[i]
			}
			p.table[i][j] = float32(min(-math.Log2(share), 12))
		}
	}
}

func (p *pairs) bits(prev, c *cell) float64 {
	switch {
	case c.letter > 0:
		return float64(p.table[prev.letter][c.letter])
	case c.flags&isHigh != 0:
		return float64(c.bits)
	case c.flags&isLetter != 0: // an ASCII letter that the language does not use
		return 8
	}
	return float64(p.table[prev.letter][0])
}
