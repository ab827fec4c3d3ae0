package maintext

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A token is a piece of a line.
type token struct {
	kind  tokenKind
	text  string // of words and code; where a link leads; an image's alternative text
	place string // an image's
}

type tokenKind int

const (
	plainWords tokenKind = iota
	codeText
	openStrong
	openEm
	closeEm // of either
	openLink
	closeLink
	image
)

// lines takes inline nodes apart into lines.
func (m *marker) lines(nodes []*html.Node) [][]token {
	c := &inliner{m: m, all: [][]token{nil}}
	for _, n := range nodes {
		c.walk(n)
	}
	return c.all
}

type inliner struct {
	m          *marker
	all        [][]token
	emphasised bool // no emphasis is in another
}

func (c *inliner) add(t token) { c.all[len(c.all)-1] = append(c.all[len(c.all)-1], t) }

func (c *inliner) walk(n *html.Node) {
	if n.Type == html.TextNode {
		for i, part := range strings.Split(unlined(n.Data), "\n") {
			if i > 0 {
				c.all = append(c.all, nil)
			}
			c.add(token{text: unmarked(part)})
		}
		return
	}
	if n.Type != html.ElementNode && n.Type != html.DocumentNode || n.DataAtom == atom.Head || n.DataAtom == atom.Script {
		return
	}
	if src := attr(n, imageAttr); src != "" {
		if to := c.m.place(src); to != "" {
			c.add(token{image, attr(n, altAttr), to})
		}
		c.add(token{text: imageMark})
		return
	}
	edge := n.DataAtom == atom.Br || !inline[n.Data] && n.DataAtom != atom.Td && n.DataAtom != atom.Th
	if edge {
		c.all = append(c.all, nil)
	}
	to := ""
	if n.DataAtom == atom.A {
		to = c.m.place(attr(n, "href"))
	}
	switch em := attr(n, emphasisAttr); {
	case em != "" && !c.emphasised:
		c.emphasised = true
		kind := openEm
		if em == "strong" {
			kind = openStrong
		}
		c.around(n, token{kind: kind}, token{kind: closeEm})
		c.emphasised = false
	case to != "":
		c.around(n, token{kind: openLink}, token{kind: closeLink, text: to})
	case n.DataAtom == atom.Code || n.DataAtom == atom.Kbd || n.DataAtom == atom.Samp || n.DataAtom == atom.Var:
		if !hasMarkup(n) {
			c.add(token{kind: codeText, text: strings.ReplaceAll(unmarked(unlined(rawText(n))), "\n", " ")})
			break
		}
		fallthrough
	default:
		c.children(n)
	}
	if edge {
		c.all = append(c.all, nil)
	}
}

func (c *inliner) children(n *html.Node) {
	for child := range n.ChildNodes() {
		c.walk(child)
	}
}

// around puts tokens around what is below a node, if that is one line.
func (c *inliner) around(n *html.Node, begin, end token) {
	line, at := len(c.all), len(c.all[len(c.all)-1])
	c.add(begin)
	c.children(n)
	if len(c.all) > line { // it goes over several
		first := c.all[line-1]
		c.all[line-1] = append(first[:at:at], first[at+1:]...)
		return
	}
	c.add(end)
}

// hasMarkup reports whether there is more than words below a node.
func hasMarkup(n *html.Node) bool {
	for d := range descendants(n) {
		if d.Type == html.ElementNode && (d.DataAtom == atom.A || !inline[d.Data] || attr(d, imageAttr) != "") {
			return true
		}
	}
	return false
}

func rawText(n *html.Node) string {
	var b strings.Builder
	for d := range descendants(n) {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// place is where a reference leads, as it can stand in parentheses; "" if that is nowhere on the web.
func (m *marker) place(ref string) string {
	if ref == "" || len(ref) > maxPlace {
		return ""
	}
	to, err := url.Parse(strings.TrimSpace(ref))
	if err != nil {
		return ""
	}
	if m.base != nil {
		to = m.base.ResolveReference(to)
	}
	switch to.Scheme {
	case "http", "https", "mailto":
	default:
		return ""
	}
	var b strings.Builder
	for _, c := range []byte(strings.ToValidUTF8(to.String(), "")) {
		if c <= ' ' || c == 0x7F || strings.IndexByte(`()<>\`, c) >= 0 {
			b.WriteString("%" + strings.ToUpper(string("0123456789abcdef"[c>>4])+string("0123456789abcdef"[c&15])))
			continue
		}
		b.WriteByte(c)
	}
	if place := b.String(); strings.IndexByte(place, '&') < 0 {
		return place
	}
	return entity.ReplaceAllString(b.String(), "&amp;$1")
}

var entity = regexp.MustCompile(`&(#?\w+;)`)

// plainOf is the words of a line, as the text has them.
func plainOf(tokens []token) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.kind == plainWords || t.kind == codeText {
			b.WriteString(t.text)
		}
	}
	return tidy(b.String())
}

// inlineOf writes a line.
func inlineOf(tokens []token, cell bool) string {
	w := inlineWriter{tokens: tokens, cell: cell}
	for i, t := range tokens {
		w.at = i
		switch t.kind {
		case plainWords:
			w.words(t.text)
		case codeText:
			w.code(t.text)
		case openStrong, openEm, openLink:
			w.open = append(w.open, opened{t.kind, i, false})
		case closeEm, closeLink:
			w.close(t)
		case image:
			w.begin('!')
			alt := strings.TrimSpace(printable(collapse(t.text, maxField)))
			w.b.WriteString("![" + escapeWords(alt, ' ', ']') + "](" + t.place + ")")
			w.last = ')'
		}
	}
	return w.b.String()
}

// An opened is markup that has been opened; written is whether words have followed, before which it stands then.
type opened struct {
	kind    tokenKind
	at      int
	written bool
}

type inlineWriter struct {
	b      strings.Builder
	tokens []token
	at     int
	cell   bool // of a table
	space  bool // stands before the next word
	last   rune // before what comes next, as it is read: 0 at the beginning, ' ' behind a space
	open   []opened
}

// begin writes what has to stand before the next words, which begin with a rune.
func (w *inlineWriter) begin(next rune) {
	if w.space && w.b.Len() > 0 {
		w.b.WriteByte(' ')
		w.last = ' '
	}
	w.space = false
	for i := range w.open {
		o := &w.open[i]
		if o.written {
			continue
		}
		switch o.kind {
		case openLink:
			w.b.WriteByte('[')
			w.last = '['
		default:
			if !w.fits(o, next) {
				o.kind = plainWords // emphasis that would not be read as such
				break
			}
			w.b.WriteString(stars[o.kind])
			w.last = '*'
		}
		o.written = true
	}
}

var stars = map[tokenKind]string{openStrong: "**", openEm: "*"}

// fits reports whether stars at both ends of emphasis are read as its ends: not with a letter outside and none inside.
func (w *inlineWriter) fits(o *opened, first rune) bool {
	isWord := func(r rune) bool { return r != 0 && !unicode.IsSpace(r) && !unicode.IsPunct(r) && !unicode.IsSymbol(r) }
	if !isWord(first) && isWord(w.last) || w.last == '*' {
		return false
	}
	var end rune // the last within
	for i := o.at + 1; i < len(w.tokens); i++ {
		switch t := w.tokens[i]; t.kind {
		case closeEm:
			after := ' '
			for _, t := range w.tokens[i+1:] {
				if text := strings.ReplaceAll(t.text, imageMark, ""); t.kind == plainWords && text != "" {
					after, _ = utf8.DecodeRuneInString(text)
					break
				} else if t.kind != plainWords && t.kind != closeLink {
					after = '*'
					break
				}
			}
			return (isWord(end) || !isWord(after)) && after != '*'
		case plainWords:
			if text := strings.TrimSpace(strings.ReplaceAll(t.text, imageMark, "")); text != "" {
				end, _ = utf8.DecodeLastRuneInString(text)
			}
		default:
			end = ')'
		}
	}
	return false
}

func (w *inlineWriter) words(text string) {
	text = printable(strings.ReplaceAll(text, imageMark, ""))
	words := strings.Fields(strings.ReplaceAll(text, "\u00AD", ""))
	if len(words) == 0 {
		w.space = w.space || text != ""
		return
	}
	first, _ := utf8.DecodeRuneInString(text)
	end, _ := utf8.DecodeLastRuneInString(text)
	w.space = w.space || unicode.IsSpace(first)
	joined := strings.Join(words, " ")
	next, _ := utf8.DecodeRuneInString(joined)
	w.begin(next)
	after := ' '
	if !unicode.IsSpace(end) {
		after = 'a' // not known: what is escaped at an end is so in any case
		if w.at+1 < len(w.tokens) && w.tokens[w.at+1].kind != plainWords {
			after = '['
		}
	}
	w.b.WriteString(escapeWords(joined, w.last, after))
	w.last, _ = utf8.DecodeLastRuneInString(joined)
	w.space = unicode.IsSpace(end)
}

func (w *inlineWriter) code(text string) {
	text = printable(text)
	words := strings.Fields(text)
	if len(words) == 0 {
		w.space = w.space || text != ""
		return
	}
	joined := strings.Join(words, " ")
	first, _ := utf8.DecodeRuneInString(text)
	end, _ := utf8.DecodeLastRuneInString(text)
	w.space = w.space || unicode.IsSpace(first)
	if w.last == '`' && !w.space { // code right behind code would be read with it
		w.words(text)
		return
	}
	w.begin('`')
	if w.cell {
		joined = strings.ReplaceAll(joined, "|", `\|`)
	}
	fence := strings.Repeat("`", longestRun(joined, '`')+1)
	pad := ""
	if joined[0] == '`' || joined[len(joined)-1] == '`' {
		pad = " "
	}
	w.b.WriteString(fence + pad + joined + pad + fence)
	w.last = '`'
	w.space = unicode.IsSpace(end)
}

// close ends what was opened last.
func (w *inlineWriter) close(t token) {
	if len(w.open) == 0 {
		return
	}
	o := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	switch {
	case !o.written || o.kind == plainWords: // nothing stood in it
	case t.kind == closeLink:
		w.b.WriteString("](" + t.text + ")")
		w.last = ')'
	default:
		w.b.WriteString(stars[o.kind])
		w.last = '*'
	}
}

// escapeWords puts a backslash before what would be markup in a line. before and after are what stands around.
func escapeWords(s string, before, after rune) string {
	if !strings.ContainsAny(s, "\\`*_[]<~|&!") {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		next := after
		if i+utf8.RuneLen(r) < len(s) {
			next, _ = utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		}
		markup := false
		switch r {
		case '\\', '`', '*', '[', ']', '<', '~', '|':
			markup = true
		case '_':
			markup = !isAlnum(before) || !isAlnum(next)
		case '&':
			markup = next == '#' || isAlnum(next)
		case '!':
			markup = next == '['
		}
		if markup {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var numbered = regexp.MustCompile(`^(\d{1,9})([.)])(\s|$)`)

// escapeStart puts a backslash before what would be markup at the beginning of a line.
func escapeStart(line string) string {
	if line == "" {
		return line
	}
	if strings.IndexByte("#+-=>:", line[0]) >= 0 {
		return `\` + line
	}
	return numbered.ReplaceAllString(line, `$1\$2$3`)
}

// printable is a text without control characters.
func printable(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, s)
}

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }

// EscapeMarkdown is a text in a line of Markdown.
func EscapeMarkdown(text string) string {
	return strings.TrimRight(escapeHeading(inlineOf([]token{{text: text}}, false)), " ")
}

// escapeHeading is a line that does not end a heading.
func escapeHeading(text string) string {
	rest := strings.TrimRight(text, "#")
	return rest + strings.Repeat(`\#`, len(text)-len(rest))
}
