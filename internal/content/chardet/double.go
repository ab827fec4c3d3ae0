package chardet

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/transform"
)

// A multiByte is a multi-byte charset.
type multiByte struct {
	name   string
	prior  float64
	enc    encoding.Encoding   // nil if there is no decoder
	length func(in []byte) int // length of the character at the beginning of in; 0 if invalid
	common map[rune]bool
	late   bool // characters with a second byte below 0xA1 are later additions
	ranks  []leadRank
}

// A leadRank is the rank of two-byte characters whose first byte is below a bound, and not below the previous bound.
type leadRank struct {
	below int
	rank  rank
}

// A rank is a frequency class of characters.
type rank uint8

const (
	rankCommon rank = iota // the most common characters of the language
	rankLetter             // hiragana
	rankSign               // punctuation, katakana
	// common ideographs in a charset that orders them by strokes only; those with few strokes
	rankFewStrokes
	rankFirst   // first level of ideographs, common Korean syllables
	rankSecond  // second level
	rankRare    // later additions
	rankSymbol  // symbols, letters of other scripts
	rankHalf    // half-width katakana
	rankInvalid // invalid or private use
)

// rankBits is the cost of a character in bits, by rank. For example, common characters make up about half of a text.
var rankBits = [...]float64{rankCommon: 9.3, rankLetter: 6.8, rankSign: 8.5, rankFewStrokes: 11.5, rankFirst: 13,
	rankSecond: 18, rankRare: 20,
	rankSymbol: 16, rankHalf: 12, rankInvalid: 32}

var multiBytes = []multiByte{
	{"gb18030", 3, simplifiedchinese.GB18030, gbLength, common["simplified"], true, []leadRank{
		{0xA1, rankRare}, {0xB0, rankSymbol}, {0xD8, rankFirst}, {0xF8, rankSecond}, {0x100, rankInvalid}}},
	{"big5", 4, traditionalchinese.Big5, big5Length, common["traditional"], false, []leadRank{
		{0xA1, rankRare}, {0xA4, rankSymbol}, {0xC7, rankFirst}, {0xFA, rankSecond}, {0x100, rankRare}}},
	{"shift_jis", 3.5, japanese.ShiftJIS, sjisLength, common["kanji"], false, []leadRank{
		{0x88, rankSymbol}, {0x98, rankFirst}, {0xEB, rankSecond}, {0x100, rankRare}}},
	{"euc-jp", 4, japanese.EUCJP, eucJPLength, common["kanji"], false, []leadRank{
		{0x8F, rankHalf}, {0xB0, rankSymbol}, {0xD0, rankFirst}, {0xF5, rankSecond}, {0x100, rankRare}}},
	{"euc-kr", 3.5, korean.EUCKR, eucKRLength, common["hangul"], true, []leadRank{
		{0xA1, rankRare}, {0xB0, rankSymbol}, {0xC9, rankFirst}, {0x100, rankSecond}}},
	// ordered by the strokes of the characters; those with up to twelve are the common ones
	{"euc-tw", 12, nil, eucTWLength, nil, false, []leadRank{
		{0xA4, rankSign}, {0xC4, rankInvalid}, {0xE5, rankFewStrokes}, {0x100, rankFirst}}},
}

// rank returns the rank of a character from its bytes.
func (d *multiByte) rank(char []byte) rank {
	switch {
	case len(char) == 1:
		return rankHalf
	case len(char) > 2 || d.late && char[1] < 0xA1:
		return rankRare
	}
	i := slices.IndexFunc(d.ranks, func(r leadRank) bool { return int(char[0]) < r.below })
	return d.ranks[i].rank
}

// bits returns the number of bits of a text in the charset. It may stop when the number exceeds limit.
func (d *multiByte) bits(gist []byte, limit float64) float64 {
	total := d.prior
	var decoder transform.Transformer
	if d.enc != nil {
		decoder = d.enc.NewDecoder().Transformer
	}
	room := make([]byte, utf8.UTFMax*2)
	for len(gist) > 0 && total <= limit {
		if gist[0] < utf8.RuneSelf {
			total += asciiBits
			gist = gist[1:]
			continue
		}
		n := d.length(gist)
		if n == 0 {
			if len(gist) < 4 { // truncated character
				break
			}
			total += rankBits[rankInvalid]
			gist = gist[1:]
			continue
		}
		total += rankBits[d.rankOf(decoder, gist[:n], room)]
		gist = gist[n:]
	}
	return total
}

// rankOf returns the rank of a character, which it decodes into room.
func (d *multiByte) rankOf(decoder transform.Transformer, char, room []byte) rank {
	r := d.rank(char)
	if decoder == nil {
		return r
	}
	decoder.Reset()
	n, _, err := decoder.Transform(room, char, true)
	c, size := utf8.DecodeRune(room[:n])
	switch {
	case err != nil || c == utf8.RuneError || size != n || unicode.Is(unicode.Co, c):
		return rankInvalid
	case 0x3041 <= c && c <= 0x3093:
		return rankLetter
	case 0x30A1 <= c && c <= 0x30FC, 0x3001 <= c && c <= 0x3011, 0xFF01 <= c && c <= 0xFF5E:
		return rankSign
	case d.common[c]:
		return rankCommon
	}
	return r
}

func in(c, from, to byte) bool { return from <= c && c <= to }

// pair returns the length of a two-byte character.
func pair(in []byte, lead, trail func(byte) bool) int {
	if len(in) >= 2 && lead(in[0]) && trail(in[1]) {
		return 2
	}
	return 0
}

func isHighByte(c byte) bool { return in(c, 0xA1, 0xFE) }

func gbLength(b []byte) int {
	if len(b) >= 4 && in(b[0], 0x81, 0xFE) && in(b[1], '0', '9') && in(b[2], 0x81, 0xFE) && in(b[3], '0', '9') {
		return 4
	}
	return pair(b, func(c byte) bool { return in(c, 0x81, 0xFE) }, func(c byte) bool {
		return in(c, 0x40, 0xFE) && c != 0x7F
	})
}

func big5Length(b []byte) int {
	return pair(b, func(c byte) bool { return in(c, 0x81, 0xFE) }, func(c byte) bool {
		return in(c, 0x40, 0x7E) || isHighByte(c)
	})
}

func sjisLength(b []byte) int {
	if in(b[0], 0xA1, 0xDF) {
		return 1
	}
	return pair(b, func(c byte) bool { return in(c, 0x81, 0x9F) || in(c, 0xE0, 0xFC) },
		func(c byte) bool { return in(c, 0x40, 0x7E) || in(c, 0x80, 0xFC) })
}

func eucJPLength(b []byte) int {
	switch {
	case b[0] == 0x8F && len(b) >= 3 && isHighByte(b[1]) && isHighByte(b[2]):
		return 3
	case b[0] == 0x8E:
		return pair(b, func(c byte) bool { return c == 0x8E }, func(c byte) bool { return in(c, 0xA1, 0xDF) })
	}
	return pair(b, isHighByte, isHighByte)
}

func eucKRLength(b []byte) int {
	return pair(b, func(c byte) bool { return in(c, 0x81, 0xFE) },
		func(c byte) bool { return in(c, 'A', 'Z') || in(c, 'a', 'z') || in(c, 0x81, 0xFE) })
}

func eucTWLength(b []byte) int {
	if b[0] == 0x8E && len(b) >= 4 && in(b[1], 0xA1, 0xB0) && isHighByte(b[2]) && isHighByte(b[3]) {
		return 4
	}
	return pair(b, isHighByte, isHighByte)
}
