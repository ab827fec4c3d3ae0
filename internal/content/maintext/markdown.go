package maintext

import (
	"bytes"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/content/parse"
)

// maxColumns is the maximum number of columns of a table. In Markdown, every row has all columns; wider tables become
// paragraphs.
const maxColumns = 200

var toMarkdown = sync.OnceValue(func() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithSpanCellBehavior(table.SpanBehaviorEmpty))))
	// The library does not escape these often enough. To decide, it searches the rest of the page for the end of each
	// bracket.
	escaped := strings.NewReplacer("\a[", `\[`, "\a]", `\]`, "\a~", `\~`, "\a*", `\*`)
	c.Register.TextTransformer(func(_ converter.Context, text string) string {
		return entity.ReplaceAllString(text, "&amp;$1")
	}, converter.PriorityEarly)
	c.Register.TextTransformer(func(_ converter.Context, text string) string { return escaped.Replace(text) },
		converter.PriorityLate)
	c.Register.RendererFor("blockquote", converter.TagTypeBlock, quote, converter.PriorityEarly)
	for _, tag := range []string{"sub", "sup"} { // Markdown has only their tags
		c.Register.RendererFor(tag, converter.TagTypeInline, enclose("<"+tag+">", "</"+tag+">"), converter.PriorityEarly)
	}
	c.Register.RendererFor("del", converter.TagTypeInline, enclose("~~", "~~"), converter.PriorityEarly)
	c.Register.RendererFor(verbatim, converter.TagTypeInline, renderVerbatim, converter.PriorityEarly)
	return c
})

// enclose returns a renderer that writes an element's content between two texts.
func enclose(before, after string) converter.HandleRenderFunc {
	return func(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
		_, _ = w.WriteString(before)
		ctx.RenderChildNodes(ctx, w, n)
		_, _ = w.WriteString(after)
		return converter.RenderSuccess
	}
}

// verbatim is the tag of elements whose attribute is Markdown.
const verbatim = "kumo-verbatim"

func renderVerbatim(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	_, _ = w.WriteString(n.Attr[0].Val)
	return converter.RenderSuccess
}

// codeLine replaces the line ends in code until the output is complete.
const codeLine = string(marker.MarkerCodeBlockNewline)

var (
	emptyLines = regexp.MustCompile(`\n( *\n)+`)
	quoted     = strings.NewReplacer("\n\n", "\n>\n> ", "\n", "\n> ", codeLine, codeLine+"> ")
)

// quote renders a blockquote. The library's renderer does not prefix the lines of code in it.
func quote(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var inner bytes.Buffer
	ctx.RenderChildNodes(ctx, &inner, n)
	text := emptyLines.ReplaceAllString(strings.TrimSpace(inner.String()), "\n\n")
	_, _ = w.WriteString("\n\n> " + quoted.Replace(text) + "\n\n")
	return converter.RenderSuccess
}

// markdown converts the main text, and reports whether it converted all of it. Without nodes of the page, the lines of
// the text become paragraphs.
func (d *document) markdown(text string, r restorer) (markup string, whole bool) {
	root := &html.Node{Type: html.DocumentNode}
	if d.found == nil {
		for line := range strings.Lines(text) {
			root.AppendChild(element(atom.P, line))
		}
	}
	c := copier{document: d}
	for _, i := range d.found {
		c.copyTo(root, i, 0)
	}
	r.restore(root, context{})
	removeRules(root)
	return convert(root), !c.full
}

// Markdown returns all of an HTML page's first article element in Markdown, without looking for its main text. It is for
// pages that have nothing else, such as the HTML form of a document.
func Markdown(body []byte, pageURL string) string {
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil { // a bytes.Reader has no errors
		return ""
	}
	base, err := url.Parse(pageURL)
	if err != nil {
		base = nil
	}
	for n := range descendants(root) {
		if n.DataAtom != atom.Article {
			continue
		}
		n.Parent.RemoveChild(n)
		(&restorer{base, "utf-8"}).restore(n, context{})
		removeRules(n)
		return strings.TrimSpace(convert(n))
	}
	return ""
}

// EscapeMarkdown escapes a text for use in a Markdown heading.
func EscapeMarkdown(text string) string {
	return strings.TrimPrefix(convert(element(atom.H1, printable(text, false))), "# ")
}

func convert(n *html.Node) string {
	out, err := toMarkdown().ConvertNode(n)
	if err != nil { // only happens without plugins
		panic(err)
	}
	return strings.ReplaceAll(string(out), rawPrefix, "")
}

func element(a atom.Atom, text string) *html.Node {
	n := &html.Node{Type: html.ElementNode, DataAtom: a, Data: a.String()}
	n.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	return n
}

// baseOf returns the base URL of a page; nil if the page's URL is unknown.
func baseOf(d *document, page string) *url.URL {
	base, err := url.Parse(page)
	if err != nil || page == "" {
		return nil
	}
	if href := d.tree.Base(); href != "" {
		if to, err := base.Parse(href); err == nil {
			return to
		}
	}
	return base
}

func textNodes(n *html.Node) (all []*html.Node) {
	for d := range descendants(n) {
		if d.Type == html.TextNode {
			all = append(all, d)
		}
	}
	return all
}

// A restorer restores the tag names, references and white space in the subtree of the article, from which Markdown is
// generated.
type restorer struct {
	base    *url.URL
	charset string // of the page; queries of links are in it
}

type context struct{ emphasis, code, cell bool }

// restore restores the nodes below n, and removes those without text or image. It returns what remains.
func (r restorer) restore(n *html.Node, in context) (has content) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		inner := r.node(c, in)
		if !inner.text && c.Type != html.TextNode && c.DataAtom != atom.Br && c.DataAtom != atom.Hr && !isCell(c) {
			n.RemoveChild(c)
		}
		has.text, has.block = has.text || inner.text, has.block || inner.block
		has.link, has.lines = has.link || inner.link, has.lines || inner.lines
		c = next
	}
	return has
}

type content struct{ text, block, link, lines bool }

func isCell(n *html.Node) bool { return n.DataAtom == atom.Td || n.DataAtom == atom.Th }

func (r restorer) node(n *html.Node, in context) content {
	if n.Type == html.TextNode {
		n.Data = printable(restoreSpace(restoreLines(n.Data)), in.code)
		return content{text: strings.TrimSpace(n.Data) != ""}
	}
	if n.Type != html.ElementNode || n.DataAtom == atom.Head || n.DataAtom == atom.Script {
		return content{}
	}
	if n.DataAtom == atom.Br && in.cell {
		rename(n, atom.Span)
		n.AppendChild(&html.Node{Type: html.TextNode, Data: " "})
		return content{text: true}
	}
	attrs := n.Attr
	n.Attr = nil
	get := func(key string) string { return attr(&html.Node{Attr: attrs}, key) }
	if src := r.resolve(get(imageAttr)); get(imageAttr) != "" {
		if src == "" || n.FirstChild == nil || n.FirstChild.Data == "" {
			return content{}
		}
		n.RemoveChild(n.FirstChild)
		rename(n, atom.Img, html.Attribute{Key: "src", Val: src},
			html.Attribute{Key: "alt", Val: printable(get(altAttr), false)})
		return content{text: true, link: true}
	}
	if markup := get(formulaAttr) + get(taskAttr); markup != "" && !in.code {
		// the library uses the text for white space around it
		n.FirstChild.Data = "x" + markup[len(strings.TrimSpace(markup)):]
		n.DataAtom, n.Data, n.Attr = 0, verbatim, []html.Attribute{{Key: "markup", Val: markup}}
		return content{text: true}
	}
	if n.DataAtom == atom.Table && !isTable(n) {
		toDivs(n)
	}
	em := get(emphasisAttr)
	has := r.restore(n, context{in.emphasis || em != "", in.code || n.DataAtom == atom.Pre, in.cell || isCell(n)})
	block := styleOf(n.DataAtom) != inline && !isCell(n)
	if isCell(n) {
		n.Attr = spans(get("colspan"), get("rowspan"))
	}
	switch {
	case n.DataAtom == atom.Pre && get("class") != "" && !in.code && !in.cell:
		n.Attr = []html.Attribute{{Key: "class", Val: get("class")}}
	case in.code:
		if n.DataAtom == atom.Pre {
			rename(n, atom.Span)
		}
	case n.DataAtom == atom.Hr && (in.cell || in.emphasis):
		rename(n, atom.Span)
		return content{}
	case (n.DataAtom == atom.Sub || n.DataAtom == atom.Sup) && has.block:
		rename(n, atom.Span)
	case block && in.cell: // a cell is a single line
		n.InsertBefore(&html.Node{Type: html.TextNode, Data: " "}, n.FirstChild)
		n.AppendChild(&html.Node{Type: html.TextNode, Data: " "})
		rename(n, atom.Span)
		return has
	case em != "" && !in.emphasis && !has.block && !has.lines && isFlanked(n):
		rename(n, atom.Lookup([]byte(em)))
	case n.DataAtom == atom.A:
		if to := r.resolve(get("href")); to != "" && !has.block {
			rename(n, atom.A, html.Attribute{Key: "href", Val: to})
			has.link = true
		} else {
			rename(n, atom.Span)
		}
	case n.DataAtom == atom.Code || n.DataAtom == atom.Kbd || n.DataAtom == atom.Samp || n.DataAtom == atom.Var:
		if has.link || has.block || in.cell && strings.Contains(rawText(n), "|") {
			rename(n, atom.Span)
		}
	// otherwise it would be written below the table
	case n.DataAtom == atom.Caption && has.text && n.Parent.DataAtom == atom.Table:
		table := n.Parent
		table.RemoveChild(n)
		table.Parent.InsertBefore(n, table)
		rename(n, atom.P)
	case n.DataAtom == atom.Menu:
		rename(n, atom.Ul)
	case n.DataAtom == atom.Ol:
		if start, err := strconv.Atoi(get("start")); err == nil && start >= 0 && start < 1_000_000 {
			n.Attr = []html.Attribute{{Key: "start", Val: strconv.Itoa(start)}}
		}
	case has.block && len(n.Data) == 2 && n.Data[0] == 'h': // a heading
		rename(n, atom.Div)
	}
	has.lines = has.lines || n.DataAtom == atom.Br
	has.block = has.block || block && n.DataAtom != atom.Br
	return has
}

// removeRules removes thematic breaks at the beginning and the end, and all but one of several in a row.
func removeRules(root *html.Node) {
	var last *html.Node // break after which there is no content yet
	var removed []*html.Node
	begun := false
	for n := range descendants(root) {
		switch {
		case n.DataAtom == atom.Hr:
			if !begun || last != nil {
				removed = append(removed, n)
			} else {
				last = n
			}
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "", n.DataAtom == atom.Img, n.Data == verbatim:
			begun, last = true, nil
		}
	}
	if last != nil {
		removed = append(removed, last)
	}
	for _, n := range removed {
		n.Parent.RemoveChild(n)
	}
}

// toDivs renames a table and its own rows and cells to div, without those of inner tables.
func toDivs(n *html.Node) {
	n.Data, n.DataAtom = "div", atom.Div
	for c := range n.ChildNodes() {
		switch c.DataAtom {
		case atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption:
			toDivs(c)
		}
	}
}

func rename(n *html.Node, a atom.Atom, attrs ...html.Attribute) {
	n.DataAtom, n.Data, n.Attr = a, a.String(), attrs
}

func rawText(n *html.Node) string {
	var b strings.Builder
	for _, t := range textNodes(n) {
		b.WriteString(t.Data)
	}
	return b.String()
}

// isFlanked reports whether asterisks around a node would be parsed as emphasis. They are not if there is a letter
// outside and none inside.
func isFlanked(n *html.Node) bool {
	text := rawText(n)
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	before, after := ' ', ' '
	outer := n
	for outer.PrevSibling == nil && outer.Parent != nil && styleOf(outer.Parent.DataAtom) == inline {
		outer = outer.Parent
	}
	if p := outer.PrevSibling; p != nil && p.Type == html.TextNode {
		before, _ = utf8.DecodeLastRuneInString(p.Data)
	} else if p != nil && p.DataAtom != atom.Br {
		before = '*'
	}
	if p := n.NextSibling; p != nil && p.Type == html.TextNode {
		after, _ = utf8.DecodeRuneInString(p.Data)
	} else if p != nil && p.DataAtom != atom.Br {
		after, _ = utf8.DecodeRuneInString(rawText(p))
	}
	isSpace, isWord := unicode.IsSpace, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	return (isSpace(before) || isSpace(first) || before != '*' && (isWord(first) || !isWord(before))) &&
		(isSpace(after) || isSpace(last) || isWord(last) || !isWord(after))
}

// spans returns the attributes of a cell that spans columns and rows.
func spans(columns, rows string) (attrs []html.Attribute) {
	const maxSpan = 20
	for key, val := range map[string]string{"colspan": columns, "rowspan": rows} {
		if n, err := strconv.Atoi(val); err == nil && n > 1 {
			attrs = append(attrs, html.Attribute{Key: key, Val: strconv.Itoa(min(n, maxSpan))})
		}
	}
	return attrs
}

// isTable reports whether a table has a row with several cells, and none with too many.
func isTable(table *html.Node) bool {
	columns := 0
	for row := range descendants(table) {
		if row.DataAtom == atom.Tr {
			n := 0
			for c := range row.ChildNodes() {
				if isCell(c) {
					n++
				}
			}
			columns = max(columns, n)
		}
	}
	return columns >= 2 && columns <= maxColumns
}

// rawPrefix keeps the library from encoding a reference again: its URL parser rejects the reference.
const rawPrefix = "\x01"

// resolve returns the absolute form of a reference, for use in parentheses; "" if it is not a web or mail address.
func (r restorer) resolve(ref string) string {
	if ref == "" || len(ref) > maxPlace {
		return ""
	}
	to, err := url.Parse(parse.Query(repaired(strings.TrimSpace(ref)), r.charset))
	if err != nil {
		return ""
	}
	if r.base != nil {
		to = r.base.ResolveReference(to)
	}
	switch to.Scheme {
	case "http", "https", "mailto":
		return rawPrefix + entity.ReplaceAllString(strings.ReplaceAll(to.String(), `\`, "%5C"), "&amp;$1")
	}
	return ""
}

// repaired makes of a reference what a browser requests: without line breaks, with slashes for backslashes in the path,
// and with an escape for a percent sign that begins none.
func repaired(ref string) string {
	if !strings.ContainsAny(ref, "%\\\n\r\t") {
		return ref
	}
	var b strings.Builder
	path := true
	for i := range len(ref) {
		switch c := ref[i]; {
		case c == '\n', c == '\r', c == '\t':
		case c == '\\' && path:
			b.WriteByte('/')
		case c == '%' && (i+2 >= len(ref) || !isHex(ref[i+1]) || !isHex(ref[i+2])):
			b.WriteString("%25")
		default:
			path = path && c != '?' && c != '#'
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

var entity = regexp.MustCompile(`&(#?\w+;)`)

// printable removes control characters, soft hyphens, and characters reserved by this package and the library. Outside
// of code, all white space becomes plain spaces.
func printable(s string, code bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return r
		case !code && unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == '\u00AD', r == marker.MarkerCodeBlockNewline, r == imageRune:
			return -1
		}
		return r
	}, s)
}
