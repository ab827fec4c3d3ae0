package tree

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// A Selector is a CSS selector, or several with commas between them. Any number of goroutines may use it.
//
// What stands between combinators is matched by cascadia, combinators by one pass over the elements: so a selector
// costs as many steps as the page has elements times its own parts, whatever the page is like.
type Selector struct {
	alternatives []chain
	// What is taken of an element: see Take.
	Take Take
}

// A Take is what a pseudo-element at the end of a selector takes of an element, in the words of Scrapy.
type Take struct {
	Attr string // ::attr(NAME)
	Own  bool   // ::text, the element's text without that of its children
}

// A chain is compounds with combinators before them.
type chain struct {
	parts    []part
	anchored bool // it begins with a combinator, which says how the first lies to where the search begins
}

type part struct {
	combinator byte // ' ', '>', '+', '~'
	compound   cascadia.Sel
	key        key
	hasPseudo  bool // it has a pseudo-class
}

// A key is what an element must have, at least, to match a compound: it is quickly looked at. "" is no such thing.
type key struct{ tag, class, id string }

const (
	maxParts    = 32
	maxSelector = 2000 // bytes
)

// Compile reads a selector. It may begin with a combinator: "> li" are the children of where the search begins.
func Compile(text string) (*Selector, error) {
	if len(text) > maxSelector {
		return nil, fmt.Errorf("it has %d bytes: %d are read", len(text), maxSelector)
	}
	s := &Selector{}
	text, err := s.take(text)
	if err != nil {
		return nil, err
	}
	pieces, err := split(text)
	if err != nil {
		return nil, err
	}
	for _, alternative := range pieces {
		c, err := compileChain(alternative)
		if err != nil {
			return nil, err
		}
		s.alternatives = append(s.alternatives, c)
	}
	return s, nil
}

// take cuts a pseudo-element off.
func (s *Selector) take(text string) (string, error) {
	before, pseudo, has := strings.Cut(text, "::")
	if !has {
		return text, nil
	}
	pseudo = strings.TrimSpace(pseudo)
	name, isAttr := strings.CutPrefix(pseudo, "attr(")
	name, closed := strings.CutSuffix(name, ")")
	switch {
	case isAttr && closed && strings.TrimSpace(name) != "":
		s.Take.Attr = strings.ToLower(strings.TrimSpace(name))
	case pseudo == "text":
		s.Take.Own = true
	default:
		return "", fmt.Errorf("::%s is not known: ::text and ::attr(NAME) are, at the end of a selector", pseudo)
	}
	return before, nil
}

// A piece is a compound as it is written, with the combinator before it: 0 for the first of a chain.
type piece struct {
	combinator byte
	text       string
}

// split cuts a selector at its commas and combinators, but not in brackets and quotes.
func split(text string) (all [][]piece, err error) {
	var now []piece
	var combinator byte
	from, depth, quote := -1, 0, byte(0)
	end := func(i int) {
		if from >= 0 {
			now = append(now, piece{combinator, text[from:i]})
			from, combinator = -1, 0
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			if from < 0 {
				from = i
			}
			i++
			continue
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '(':
			depth++
		case c == ']' || c == ')':
			depth--
		case depth > 0:
		case isSpace(c):
			if end(i); combinator == 0 && len(now) > 0 {
				combinator = ' '
			}
			continue
		case c == '>' || c == '+' || c == '~':
			if end(i); combinator != 0 && combinator != ' ' {
				return nil, fmt.Errorf("%q and %q stand side by side", combinator, c)
			}
			combinator = c
			continue
		case c == ',':
			if end(i); len(now) == 0 || combinator != 0 && combinator != ' ' {
				return nil, errors.New("a selector is missing at a comma")
			}
			all, now, combinator = append(all, now), nil, 0
			continue
		}
		if from < 0 {
			from = i
		}
	}
	end(len(text))
	if len(now) == 0 || combinator != 0 && combinator != ' ' {
		return nil, errors.New("a selector is missing at its end")
	}
	return append(all, now), nil
}

func compileChain(pieces []piece) (c chain, err error) {
	if len(pieces) > maxParts {
		return c, fmt.Errorf("it has %d parts: up to %d are read", len(pieces), maxParts)
	}
	for i, p := range pieces {
		if i == 0 && p.text == ":scope" && p.combinator == 0 && len(pieces) > 1 {
			continue // what follows says how it lies to where the search begins
		}
		sel, err := cascadia.Parse(p.text)
		if err != nil {
			return c, fmt.Errorf("%q is no selector: %w", p.text, err)
		}
		if why := nestedCombinator(p.text); why != "" {
			return c, errors.New(why)
		}
		if len(c.parts) == 0 && p.combinator != 0 {
			c.anchored = true
		}
		c.parts = append(c.parts, part{max(p.combinator, ' '), sel, keyOf(p.text), strings.Contains(p.text, ":")})
	}
	return c, nil
}

// nestedCombinator says why a compound is refused: combinators within brackets would take a page's elements to a power.
func nestedCombinator(text string) string {
	for _, name := range []string{":has(", ":haschild(", ":not(", ":is(", ":where(", ":matches("} {
		for from := 0; ; {
			i := strings.Index(text[from:], name)
			if i < 0 {
				break
			}
			from += i + len(name)
			if all, err := split(text[from : from+closing(text[from:])]); err == nil {
				for _, pieces := range all {
					if len(pieces) > 1 {
						return fmt.Sprintf("%q: in %s...) a selector without combinators is wanted", text, name)
					}
				}
			}
		}
	}
	return ""
}

// closing is where the bracket closes that was opened before a text.
func closing(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return len(text)
}

// keyOf is what a compound asks for at its beginning: a tag, a class or an id in plain letters.
func keyOf(text string) (k key) {
	first, rest := text, ""
	for i := 1; i < len(text); i++ {
		if !isPlain(text[i]) {
			first, rest = text[:i], text[i:]
			break
		}
	}
	if rest != "" && (rest[0] == '\\' || rest[0] >= utf8.RuneSelf) {
		return key{} // the name goes on
	}
	switch {
	case first[0] == '.' && len(first) > 1:
		k.class = first[1:]
	case first[0] == '#' && len(first) > 1:
		k.id = first[1:]
	case isLetter(first[0]):
		k.tag = lower(first)
	}
	return k
}

func isPlain(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '_' }

// fits reports whether an element has what the key asks for.
func (k *key) fits(n *html.Node, class string) bool {
	switch {
	case n.Type != html.ElementNode:
		return false
	case k.tag != "":
		return n.Data == k.tag
	case k.class != "":
		return len(class) >= len(k.class) && strings.Contains(class, k.class)
	case k.id != "":
		for i := range n.Attr {
			if n.Attr[i].Key == "id" {
				return n.Attr[i].Val == k.id
			}
		}
		return false
	}
	return true
}

// A mask says of an element which parts of a chain lead to it: a bit each.
type mask struct{ here, above, before uint32 }

// Steps is how many a tree may take, for all that is looked for in it. A step takes some nanoseconds.
const Steps = 10_000_000

// Spend takes steps off the tree's budget, and reports whether there were as many.
func (t *Tree) Spend(steps int) bool {
	t.spent += steps
	return t.spent <= Steps
}

// Find finds the elements within the scope-th node that match, up to max of them, in the order of the document.
func (t *Tree) Find(s *Selector, scope, max int) (found []int) {
	for i := range s.alternatives {
		found = t.findChain(found, &s.alternatives[i], scope, max)
	}
	if len(s.alternatives) > 1 {
		slices.Sort(found)
		found = slices.Compact(found)
		found = found[:min(len(found), max)]
	}
	return found
}

func (t *Tree) findChain(found []int, c *chain, scope, max int) []int {
	last := &c.parts[len(c.parts)-1]
	from, end := scope+1, int(t.at[scope].end)
	if c.anchored && (c.parts[0].combinator == '+' || c.parts[0].combinator == '~') {
		end = int(t.at[t.at[scope].parent].end)
	}
	if !t.Spend(end - from) {
		return found
	}
	first := from // that may match
	for ; first < end; first++ {
		if last.key.fits(t.nodes[first], t.at[first].class) {
			break
		}
	}
	if first == end {
		return found
	}
	if len(c.parts) > 1 || c.anchored {
		return t.scan(found, c, scope, end, max)
	}
	for n := 0; first < end && n < max; first++ {
		if last.key.fits(t.nodes[first], t.at[first].class) && t.matches(last, first) {
			found = append(found, first)
			n++
		}
	}
	return found
}

// scan goes over the elements behind scope up to end.
func (t *Tree) scan(found []int, c *chain, scope, end, max int) []int {
	if !t.Spend((end - scope) * len(c.parts)) {
		return found
	}
	size := end - scope
	if cap(t.masks) < size {
		t.masks = make([]mask, size)
	}
	m := t.masks[:size]
	clear(m)
	whole := uint32(1) << (len(c.parts) - 1)
	for i, n := scope+1, 0; i < end && n < max; i++ {
		node := t.nodes[i]
		if node.Type != html.ElementNode {
			continue
		}
		at, here := &t.at[i], &m[i-scope]
		var parent, before mask
		if int(at.parent) >= scope {
			parent = m[int(at.parent)-scope]
			here.above = parent.above | parent.here
		}
		if int(at.before) > scope {
			before = m[int(at.before)-scope]
			here.before = before.before | before.here
		}
		for j := range c.parts {
			p := &c.parts[j]
			reached := false
			switch {
			case j == 0 && !c.anchored:
				reached = i < int(t.at[scope].end)
			case j == 0:
				reached = t.anchored(p.combinator, scope, i)
			default:
				bit := uint32(1) << (j - 1)
				switch p.combinator {
				case ' ':
					reached = here.above&bit != 0
				case '>':
					reached = parent.here&bit != 0
				case '+':
					reached = before.here&bit != 0
				case '~':
					reached = here.before&bit != 0
				}
			}
			if reached && p.key.fits(node, at.class) && t.matches(p, i) {
				here.here |= 1 << j
			}
		}
		if here.here&whole != 0 {
			found = append(found, i)
			n++
		}
	}
	return found
}

// anchored reports whether a node lies to the scope as a combinator at the beginning says.
func (t *Tree) anchored(combinator byte, scope, i int) bool {
	at := &t.at[i]
	switch combinator {
	case '>':
		return int(at.parent) == scope
	case '+':
		return int(at.before) == scope && scope > 0
	case '~':
		return at.parent == t.at[scope].parent && i > scope
	}
	return i < int(t.at[scope].end)
}

// matches asks cascadia. A pseudo-class may look at all that is in an element, or beside it.
func (t *Tree) matches(p *part, i int) bool {
	steps := 1
	if up := t.at[i].parent; p.hasPseudo {
		steps = int(t.at[up].end - up)
	}
	return t.Spend(steps) && p.compound.Match(t.nodes[i])
}

// ResetSteps gives a tree its steps anew.
func (t *Tree) ResetSteps() { t.spent = 0 }
