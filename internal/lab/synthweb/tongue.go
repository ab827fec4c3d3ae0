package synthweb

import (
	"strings"
	"sync"

	"kumo/internal/lab/dice"
)

// A tongue is a charset and the words that a host writes in it. It is the same in all webs.
type tongue struct {
	charset   string
	words     [][]byte // in charset
	language  string   // language code; "" for made-up words
	sentences [][]byte // sentences of a language, in charset
	paths     []pathWord
	blocks    blocks
}

// A pathWord is a non-ASCII path segment.
type pathWord struct {
	escaped string // UTF-8 with percent-escapes
	raw     []byte // in the tongue's charset
}

var universal = syntheticTongue(
	"utf-8",
	"ba be ca co da de en er es fi ga gra in ka la lo ma mi na no or pa pré ra re ro sa si "+
		"sta ta te ti tion u va ve vü za hé",
)

var legacies = []func() *tongue{
	syntheticTongue("windows-1251", "ба ве го да ет жи за ин ка ло ма на об по ра ст та ум фо ход че ши ый эк юг яр "+
		"ние ска при про"),
	syntheticTongue("Shift_JIS", "あ い う か き く さ し た な に の は ま も や ら り る を ん カ サ タ ト ラ ン ソ 表 能 日 本 語 人"),
	syntheticTongue("GBK", "的 一 是 不 了 在 人 有 我 他 这 中 大 来 上 国 个 到 说 们 为 子 和 你 地 出 道 也 时 年 得 就"),
}

// syntheticTongue returns a tongue of made-up words, which is created on first use.
func syntheticTongue(charset, syllables string) func() *tongue {
	return sync.OnceValue(func() *tongue { return newTongue(charset, syllables) })
}

// legacy returns the tongue of host i, one of those that do not use UTF-8.
func legacy(i int) *tongue { return legacies[i%len(legacies)]() }

func newTongue(charset, syllables string) *tongue {
	t := &tongue{charset: charset}
	parts := strings.Fields(syllables)
	d := dice.Dice(dice.Hash(uint64(len(parts)), uint64(len(charset))))
	written := func(s string) []byte {
		b, ok := encode(s, charset)
		if !ok {
			panic("synthweb: " + charset + " cannot represent one of its syllables")
		}
		return b
	}
	for range 300 {
		t.words = append(t.words, written(madeWord(&d, parts, 1+d.Below(4))))
	}
	for range 32 {
		word := parts[len(parts)-1] + madeWord(&d, parts, 2) // the last syllable is never ASCII
		t.paths = append(t.paths, pathWord{escaped: escape(word), raw: written(word)})
	}
	t.blocks = newBlocks(t.words, &d)
	return t
}

func (t *tongue) path(x uint64) *pathWord { return &t.paths[x%uint64(len(t.paths))] }

func madeWord(d *dice.Dice, syllables []string, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(syllables[d.Below(len(syllables))])
	}
	return b.String()
}

// escape percent-encodes non-ASCII bytes.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < 0x80 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
