package maintext

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A tagAction determines what thinning does with a tag.
type tagAction uint8

const (
	keep        tagAction = iota
	drop                  // drop the tag, keep its content
	erase                 // drop the tag and its raw text
	foreign               // drop everything up to its end or to the next HTML
	stripAttrs            // keep without attributes
	link                  // drop if it has a name and no target; left open, it would make the rest of the page a link
	once                  // keep only the first
	span                  // drop unless its attributes are significant
	selfClosing           // keep without counting it as depth, because it closes by itself
	void                  // keep; it has no end tag
)

// tagActions has the tags that are not simply kept. Inline markup is dropped, because the text does not need it. Also,
// a tree builder reopens it in each new paragraph, so a few bytes per paragraph could create a tree of any size.
var tagActions = map[atom.Atom]tagAction{
	atom.B:      drop,
	atom.Big:    drop,
	atom.Em:     drop,
	atom.Font:   drop,
	atom.I:      drop,
	atom.Nobr:   drop,
	atom.S:      drop,
	atom.Small:  drop,
	atom.Strike: drop,
	atom.Strong: drop,
	atom.Tt:     drop,
	atom.U:      drop,
	atom.Ins:    drop,
	atom.Mark:   drop,
	atom.Img:    drop,
	atom.Source: drop,
	atom.Track:  drop,
	atom.Link:   drop,
	atom.Input:  drop,
	atom.Wbr:    drop,
	atom.Col:    drop,

	atom.Script:   erase,
	atom.Style:    erase,
	atom.Iframe:   erase,
	atom.Noembed:  erase,
	atom.Noframes: erase,
	atom.Noscript: erase,
	atom.Textarea: erase,
	atom.Svg:      foreign,
	atom.Math:     foreign,

	atom.Code:  stripAttrs,
	atom.Span:  span,
	atom.A:     link,
	atom.Html:  once,
	atom.Head:  once,
	atom.Body:  once,
	atom.Title: once,

	atom.P:      selfClosing,
	atom.Li:     selfClosing,
	atom.Dt:     selfClosing,
	atom.Dd:     selfClosing,
	atom.Tr:     selfClosing,
	atom.Td:     selfClosing,
	atom.Th:     selfClosing,
	atom.Tbody:  selfClosing,
	atom.Thead:  selfClosing,
	atom.Tfoot:  selfClosing,
	atom.Option: selfClosing,

	atom.Meta:  void,
	atom.Br:    void,
	atom.Hr:    void,
	atom.Base:  void,
	atom.Area:  void,
	atom.Embed: void,
	atom.Param: void,
}

// breakout has the tags that end an unclosed svg or math element.
var breakout = map[atom.Atom]bool{
	atom.Body: true, atom.Div: true, atom.P: true, atom.Ul: true, atom.Ol: true, atom.Li: true, atom.Table: true,
	atom.Span: true,
	atom.H1:   true, atom.H2: true, atom.H3: true, atom.H4: true, atom.Br: true, atom.Img: true,
}

// A thinner copies the tokens of a page that are relevant for its text, up to the limits.
type thinner struct {
	tokens  *html.Tokenizer
	out     bytes.Buffer
	tags    int
	open    map[atom.Atom]int // kept start tags minus kept end tags
	depth   int               // open elements
	deeper  int               // open elements beyond the limit
	erasing bool              // the next text belongs to an erased tag
	foreign bool              // inside svg or math
	markup  bool              // keep emphasis and images as spans
	kept    []bool            // for each open span of the page, whether it was kept
	names   map[string]bool   // whether a class or id is significant; a cache
	tag     []byte            // buffer of copied
	spans   int               // open spans of emphasis
	marks   int               // written marker tags, which do not count as tags
	marked  int               // bytes of these
}

// thin returns the part of a page from which to build a tree, in time linear in the body. If that is not the whole
// page, the error is an ErrTooLarge.
func thin(body []byte, markup bool) (*bytes.Buffer, error) {
	whole := len(body)
	body = body[:min(whole, maxBody)]
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	t := &thinner{tokens: html.NewTokenizer(bytes.NewReader(body)), open: map[atom.Atom]int{}, markup: markup,
		names: map[string]bool{}}
	t.tokens.SetMaxBuf(maxToken)
	for t.next() {
		switch {
		case t.out.Len()-t.marked >= maxThin:
			return &t.out, fmt.Errorf("%w: more than %d bytes without scripts, styles and inline markup", ErrTooLarge, maxThin)
		case t.tags >= maxTags:
			return &t.out, fmt.Errorf("%w: more than %d tags", ErrTooLarge, maxTags)
		}
	}
	switch {
	case errors.Is(t.tokens.Err(), html.ErrBufferExceeded):
		return &t.out, fmt.Errorf("%w: a tag, script or text of more than %d bytes", ErrTooLarge, maxToken)
	case whole > maxBody:
		return &t.out, fmt.Errorf("%w: %d bytes, %d are read", ErrTooLarge, whole, maxBody)
	}
	return &t.out, nil
}

// next processes a token and reports whether there was one.
func (t *thinner) next() bool {
	kind, raw := t.tokens.Next(), t.tokens.Raw()
	switch kind {
	case html.ErrorToken:
		return false
	case html.TextToken:
		if !t.erasing && !t.foreign {
			t.out.Write(raw[:min(len(raw), maxThin+t.marked-t.out.Len())])
		}
	case html.DoctypeToken:
		t.out.Write(raw[:min(len(raw), maxTag)])
	case html.StartTagToken, html.SelfClosingTagToken:
		t.start(raw)
		return true
	case html.EndTagToken:
		t.end(raw)
	}
	t.erasing = false
	return true
}

func (t *thinner) start(raw []byte) {
	name, attrs := t.tokens.TagName()
	a := atom.Lookup(name)
	t.foreign = t.foreign && !breakout[a]
	if t.foreign {
		t.tokens.NextIsNotRawText() // in svg and math, title and style do not contain raw text
		return
	}
	f := tagActions[a]
	switch f {
	case drop:
		if t.markup {
			t.span(a)
		}
		return
	case foreign:
		t.foreign = true
		return
	case erase:
		raw = t.copied(raw) // isJSONLD unescapes attributes in place
		if a != atom.Script || !attrs || !t.isJSONLD() {
			t.erasing = true
			return
		}
	case once:
		if t.open[a] > 0 {
			t.erasing = a == atom.Title
			return
		}
	case link:
		raw = t.copied(raw) // so does isNamedAnchor
		if t.isNamedAnchor() {
			return
		}
		fallthrough
	case keep, stripAttrs, span:
		if f == span {
			raw = t.copied(raw)
			if !t.retainsSpan(attrs) {
				return
			}
		}
		if t.depth >= maxDepth {
			t.deeper++
			return
		}
		t.depth++
	}
	t.open[a]++
	t.tags++
	if f == stripAttrs || len(raw) > maxTag {
		raw = []byte("<" + string(name[:min(len(name), maxTag)]) + ">")
	}
	t.out.Write(raw)
}

func (t *thinner) end(raw []byte) {
	name, _ := t.tokens.TagName()
	a := atom.Lookup(name)
	f := tagActions[a]
	if last := len(t.kept) - 1; f == span && !t.foreign && last >= 0 {
		kept := t.kept[last]
		t.kept = t.kept[:last]
		if !kept {
			return
		}
	}
	switch {
	case t.foreign:
		t.foreign = f != foreign
		return
	case f == drop && t.open[a] > 0:
		t.open[a]--
		t.spans--
		t.writeMarker("</span>")
		return
	case f == once && a != atom.Title && a != atom.Head, t.open[a] == 0:
		return
	case f == keep || f == stripAttrs || f == link || f == span:
		if t.deeper > 0 {
			t.deeper--
			return
		}
		t.depth = max(t.depth-1, 0)
	}
	if f != once {
		t.open[a]--
	}
	t.tags++
	t.out.Write(raw[:min(len(raw), maxTag)])
}

// copied returns a copy of a tag, valid until the next call.
func (t *thinner) copied(raw []byte) []byte {
	t.tag = append(t.tag[:0], raw...)
	return t.tag
}

// isJSONLD reports whether the current script is JSON-LD.
func (t *thinner) isJSONLD() bool {
	for more := true; more; {
		var key, val []byte
		key, val, more = t.tokens.TagAttr()
		if string(key) == "type" {
			return bytes.EqualFold(bytes.TrimSpace(val), []byte("application/ld+json"))
		}
	}
	return false
}

// isNamedAnchor reports whether the current a element is an anchor and not a link.
func (t *thinner) isNamedAnchor() bool {
	named := false
	for more := true; more; {
		var key []byte
		key, _, more = t.tokens.TagAttr()
		switch string(key) {
		case "href":
			return false
		case "name", "id":
			named = true
		}
	}
	return named
}
