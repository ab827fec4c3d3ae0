package pdf

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"

	"kumo/internal/content/document"
)

// A box is the rectangle of a character, in points from the page's bottom left corner.
type box struct{ left, right, top, bottom float64 }

// A line is a line of text of a page.
type line struct {
	page   int
	text   string
	hyphen bool // its last word continues in the next line
	alone  bool // it is a paragraph: the value of a form's field
	placed bool // the rest is known
	// for right-to-left text mirrored: the line begins at start
	start, end, base, size float64
}

// place sets where the line is. Its size is the median, as the first character may be a superscript.
func (l *line) place(boxes []box) {
	if len(boxes) == 0 {
		return
	}
	left, right := math.Inf(1), math.Inf(-1)
	sizes, bases := make([]float64, 0, 3), make([]float64, 0, 3)
	for _, b := range boxes {
		left, right = min(left, b.left), max(right, b.right)
		sizes, bases = append(sizes, b.top-b.bottom), append(bases, b.bottom)
	}
	slices.Sort(sizes)
	slices.Sort(bases)
	l.start, l.end, l.base, l.size = left, right, bases[len(bases)/2], sizes[len(sizes)/2]
	if rightToLeft(l.text) {
		l.start, l.end = -right, -left
	}
	l.placed = l.size > 0 && !math.IsInf(l.size, 0) && !math.IsNaN(l.start+l.end+l.base)
}

// rightToLeft reports whether the first letter with a direction is of a right-to-left script.
func rightToLeft(s string) bool {
	for _, r := range s {
		p, _ := bidi.LookupRune(r)
		switch p.Class() {
		case bidi.L:
			return false
		case bidi.R, bidi.AL:
			return true
		default:
		}
	}
	return false
}

// isHyphenMark reports whether a character stands for a hyphen at the end of a line: so PDFium marks it.
func isHyphenMark(r rune) bool { return r == 0xFFFE || r == 2 }

func isBreak(r rune) bool { return r == '\n' || r == '\r' || isHyphenMark(r) }

const softHyphen = 0xAD

// combining has the combining characters of accents.
var combining = map[rune]rune{'`': 0x300, '´': 0x301, 'ˆ': 0x302, '˜': 0x303, '¯': 0x304, '˘': 0x306, '˙': 0x307,
	'¨': 0x308, '˚': 0x30A, '˝': 0x30B, 'ˇ': 0x30C, '^': 0x302, '~': 0x303}

// compose returns a letter with an accent; 0 if there is none.
func compose(letter, accent rune) rune {
	if letter == 'ı' {
		letter = 'i'
	}
	if !unicode.IsLetter(letter) {
		return 0
	}
	c := []rune(norm.NFC.String(string([]rune{letter, combining[accent]})))
	if len(c) != 1 {
		return 0
	}
	return c[0]
}

// trim returns the bounds of chars[from:to] without white space around.
func trim(chars []rune, from, to int) (int, int) {
	for from < to && (unicode.IsSpace(chars[from]) || chars[from] == 0) {
		from++
	}
	for to > from && (unicode.IsSpace(chars[to-1]) || chars[to-1] == 0) {
		to--
	}
	return from, to
}

// clean returns characters with ligatures and Arabic presentation forms expanded, white space collapsed, and control
// characters removed.
func clean(chars []rune) string {
	var b strings.Builder
	space := false
	for _, r := range chars {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if unicode.IsControl(r) || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF || r == 0xFEFF ||
			r == softHyphen ||
			r >= 0xE000 && r <= 0xF8FF {
			continue // private use: glyphs without a character, such as bullets of symbol fonts
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		if r >= 0xFB00 && r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC {
			b.WriteString(strings.TrimSpace(norm.NFKC.String(string(r))))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// bullets begin an item of a list.
const bullets = "•‣◦▪●○■□∙⁃"

// A paragraph is a block before it is known which sizes headings have.
type paragraph struct {
	block document.Block
	size  float64
	last  line    // its last line
	lines int     // number of lines
	right float64 // farthest end of its lines
	step  float64 // distance of its last two lines; 0 if it has one
}

// paragraphs joins lines.
func paragraphs(lines []line) []paragraph {
	var all []paragraph
	for i, l := range lines {
		if n := len(all); n > 0 && all[n-1].continuesWith(l, lines[min(i+1, len(lines)-1)]) {
			all[n-1].add(l)
			continue
		}
		p := paragraph{block: document.Block{Text: l.text, Page: l.page}, size: l.size, last: l, lines: 1, right: l.end}
		if r, n := utf8.DecodeRuneInString(l.text); strings.ContainsRune(bullets, r) && len(l.text) > n {
			p.block.Kind, p.block.Text = document.Item, strings.TrimSpace(l.text[n:])
		}
		all = append(all, p)
	}
	return all
}

// continuesWith reports whether a line continues the paragraph.
func (p *paragraph) continuesWith(l, next line) bool {
	last := p.last
	if l.alone || last.alone || l.page != last.page {
		return false
	}
	if last.hyphen {
		return true
	}
	if !l.placed || !last.placed {
		return true
	}
	if r, n := utf8.DecodeRuneInString(l.text); strings.ContainsRune(bullets, r) && len(l.text) > n {
		return false
	}
	if ratio := l.size / last.size; ratio < 0.85 || ratio > 1.18 {
		return false
	}
	step := last.base - l.base
	if step < -last.size || step > 8*last.size || l.start > last.end || l.end < last.start {
		// another column: the paragraph continues there if the sentence does
		r, _ := utf8.DecodeRuneInString(l.text)
		return p.lines > 1 && unicode.IsLower(r) && !endsSentence(last.text)
	}
	if step < 0.3*last.size {
		return true // the same line: a cell or a part with another font
	}
	if step > 1.75*last.size || p.step > 0 && step > 1.35*p.step {
		return false
	}
	if p.block.Kind == document.Item {
		return l.start > last.start-0.5*last.size || p.lines > 1
	}
	if l.start > last.start+0.7*last.size && (p.lines > 1 || next.page == l.page && next.start < l.start-0.5*l.size) {
		return false // its first line is indented
	}
	// a line that ends early is the last one of its paragraph
	full := max(p.right, l.end)
	if endsSentence(last.text) && last.end < full-3*last.size {
		return false
	}
	return true
}

func (p *paragraph) add(l line) {
	if step := p.last.base - l.base; step > 0.3*l.size && step < 3*l.size {
		p.step = step
	}
	p.block.Text = join(p.block.Text, l.text, p.last.hyphen)
	p.last, p.right = l, max(p.right, l.end)
	p.lines++
}

// endsSentence reports whether a text ends with a mark that ends sentences.
func endsSentence(s string) bool {
	s = strings.TrimRight(s, `"'”’)]»`)
	r, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?:;。！？؟۔", r)
}

// join appends a line to a paragraph. hyphen: the last word continues.
func join(a, b string, hyphen bool) string {
	if a == "" || b == "" {
		return a + b
	}
	first, _ := utf8.DecodeRuneInString(b)
	last, size := utf8.DecodeLastRuneInString(a)
	switch {
	case hyphen && unicode.IsLower(first):
		return a + b
	case hyphen:
		return a + "-" + b // such as a double name, or a number
	case (last == '-' || last == '\u2010') && unicode.IsLower(first) && endsInWord(a[:len(a)-size]):
		return a[:len(a)-size] + b
	case isIdeographic(last) && isIdeographic(first):
		return a + b
	case strings.ContainsRune("/-_=&?%#", last) && endsInURL(a):
		return a + b
	}
	return a + " " + b
}

// joinAll joins the lines of a text that PDFium returned.
func joinAll(s string) string {
	chars := []rune(s)
	joined, hyphen, begin := "", false, 0
	for i := 0; i <= len(chars); i++ {
		if i < len(chars) && !isBreak(chars[i]) {
			continue
		}
		if t := clean(chars[begin:i]); t != "" {
			joined = join(joined, t, hyphen)
			hyphen = i < len(chars) && isHyphenMark(chars[i])
		}
		begin = i + 1
	}
	return joined
}

func endsInWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r)
}

func endsInURL(s string) bool {
	s = s[strings.LastIndexByte(s, ' ')+1:]
	return strings.Contains(s, "://")
}

// isIdeographic reports whether a character is of a script without spaces between words.
func isIdeographic(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r >= 0x3000 && r <= 0x303F ||
		r >= 0xFF01 && r <= 0xFF60 || r == 'ー'
}

// headings turns short paragraphs in larger letters than those of most text into headings, of at most four levels.
func headings(all []paragraph) {
	chars := map[float64]int{}
	for i := range all {
		chars[half(all[i].size)] += len(all[i].block.Text)
	}
	body, most := 0.0, 0
	for size, n := range chars {
		if size > 0 && (n > most || n == most && size < body) {
			body, most = size, n
		}
	}
	if body == 0 {
		return
	}
	isHeading := func(p *paragraph) bool {
		return p.block.Kind == document.Paragraph && half(p.size) >= 1.15*body && p.lines <= 4 &&
			len(p.block.Text) <= 200 && strings.IndexFunc(p.block.Text, unicode.IsLetter) >= 0
	}
	var sizes []float64
	for i := range all {
		if isHeading(&all[i]) {
			sizes = append(sizes, half(all[i].size))
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	slices.Reverse(sizes)
	level, levels := map[float64]int{}, 0
	for i, size := range sizes {
		if i == 0 || size < 0.93*sizes[i-1] {
			levels = min(levels+1, 4)
		}
		level[size] = levels
	}
	for i := range all {
		if p := &all[i]; isHeading(p) {
			p.block.Kind, p.block.Level = document.Heading, level[half(p.size)]
		}
	}
}

// half rounds a size to half points.
func half(size float64) float64 { return math.Round(size*2) / 2 }
