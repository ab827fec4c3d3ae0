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

// A Selector is a list of CSS selectors. It is safe for concurrent use.
//
// The package cascadia matches the parts between combinators; combinators are evaluated in one pass over the elements.
// So the cost is the number of elements times the number of parts, for any page.
type Selector struct {
	alternatives []chain
	// the part of an element to extract
	Take Take
}

// A Take is the pseudo-element at the end of a selector, with the names of Scrapy.
type Take struct {
	Attr string // ::attr(NAME)
	Own  bool   // ::text, the text of the element without its children's
}

// A chain is a sequence of compound selectors with the combinators before them.
type chain struct {
	parts    []part
	anchored bool // it begins with a combinator, which relates the first part to the scope
}

type part struct {
	combinator byte // ' ', '>', '+', '~'
	compound   cascadia.Sel
	key        key
	hasPseudo  bool // it has a pseudo-class
}

// A key is a quick test for elements: an element that matches the compound selector also matches the key. Empty fields
// are ignored.
type key struct{ tag, class, id string }

const (
	maxParts    = 32
	maxSelector = 2000 // bytes
)

// Compile parses a selector. It may begin with a combinator: "> li" matches the children of the scope.
func Compile(text string) (*Selector, error) {
	if len(text) > maxSelector {
		return nil, fmt.Errorf("the selector has %d bytes, at most %d are allowed", len(text), maxSelector)
	}
	s := &Selector{}
	text, err := s.parseSuffix(text)
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

// parseSuffix splits off a pseudo-element.
func (s *Selector) parseSuffix(text string) (string, error) {
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
		return "", fmt.Errorf("unknown pseudo-element ::%s; use ::text or ::attr(NAME) at the end of a selector", pseudo)
	}
	return before, nil
}

// A piece is the text of a compound selector, with the combinator before it: 0 for the first of a chain.
type piece struct {
	combinator byte
	text       string
}

// split splits a selector at commas and combinators outside of brackets and quotes.
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
				return nil, fmt.Errorf("two consecutive combinators %q and %q", combinator, c)
			}
			combinator = c
			continue
		case c == ',':
			if end(i); len(now) == 0 || combinator != 0 && combinator != ' ' {
				return nil, errors.New("no selector before or after a comma")
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
		return nil, errors.New("no selector after the last combinator")
	}
	return append(all, now), nil
}

func compileChain(pieces []piece) (c chain, err error) {
	if len(pieces) > maxParts {
		return c, fmt.Errorf("the selector has %d parts, at most %d are allowed", len(pieces), maxParts)
	}
	for i, p := range pieces {
		if i == 0 && p.text == ":scope" && p.combinator == 0 && len(pieces) > 1 {
			continue // the combinator after it relates to the scope
		}
		sel, err := cascadia.Parse(p.text)
		if err != nil {
			return c, fmt.Errorf("%q is not a selector: %w", p.text, err)
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

// nestedCombinator returns an error text for a compound selector with combinators in brackets. Their cost would be a
// power of the page's elements.
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
						return fmt.Sprintf("%q: combinators are not allowed inside %s...)", text, name)
					}
				}
			}
		}
	}
	return ""
}

// closing returns the index of the bracket that closes the one before a text.
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

// keyOf returns the key of a compound selector: its leading tag, class or id in plain letters.
func keyOf(text string) (k key) {
	first, rest := text, ""
	for i := 1; i < len(text); i++ {
		if !isPlain(text[i]) {
			first, rest = text[:i], text[i:]
			break
		}
	}
	if rest != "" && (rest[0] == '\\' || rest[0] >= utf8.RuneSelf) {
		return key{} // the name continues
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

// fits reports whether an element matches the key.
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

// A mask records which parts of a chain match an element, its ancestors and its previous siblings, one bit per part.
type mask struct{ here, above, before uint32 }

// Steps is the number of steps of a tree, for all searches together. A step takes some nanoseconds.
const Steps = 10_000_000

// Spend takes steps from the tree's budget. It returns false if the budget is exceeded.
func (t *Tree) Spend(steps int) bool {
	t.spent += steps
	return t.spent <= Steps
}

// Find returns the elements below node scope that match, up to max, in document order.
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
	first := from // first candidate
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

// scan evaluates a chain for the elements after scope up to end.
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

// anchored reports whether node i is related to scope by a leading combinator.
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

// matches matches a part with cascadia. A pseudo-class may inspect all descendants or siblings of an element.
func (t *Tree) matches(p *part, i int) bool {
	steps := 1
	if up := t.at[i].parent; p.hasPseudo {
		steps = int(t.at[up].end - up)
	}
	return t.Spend(steps) && p.compound.Match(t.nodes[i])
}

// ResetSteps restores the tree's budget of steps.
func (t *Tree) ResetSteps() { t.spent = 0 }
