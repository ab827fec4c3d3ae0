package yaml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

const (
	maxTokens = 500_000 // about 400 bytes of memory each
	maxDepth  = 64
	maxKeys   = 1000     // per mapping; the library's time is quadratic in it
	maxRare   = 1000     // each of anchors, tags, keys marked with ?, empty values, and documents; also quadratic
	maxAlias  = 10_000   // aliases
	maxPaths  = 64 << 20 // total bytes of node paths; the library stores the path from the root in each node
	maxNodes  = maxTokens
	maxText   = 2 * MaxSize // bytes of scalars, counting an alias as its anchor's node
)

var (
	errSize   = fmt.Errorf("more than %d MiB of YAML", MaxSize>>20)
	errTokens = fmt.Errorf("more than %d values and indicators of YAML", maxTokens)
)

// tokenize returns the tokens of data, if the library can parse them within the limits.
func tokenize(data []byte) (token.Tokens, error) {
	if len(data) > MaxSize {
		return nil, errSize
	}
	if countTokens(data) > maxTokens {
		return nil, errTokens
	}
	var all token.Tokens
	err := protect(func() error {
		var s scanner.Scanner
		s.Init(string(data))
		tokens, err := s.Scan() // stops at the first error
		all.Add(tokens...)
		if bad := all.InvalidToken(); bad != nil {
			return &yaml.SyntaxError{Message: bad.Error, Token: bad}
		}
		if err != nil && len(data) > 0 {
			return err
		}
		if len(all) > maxTokens {
			return errTokens
		}
		return (&counter{tokens: all}).count()
	})
	return all, err
}

// countTokens returns an upper bound of the number of tokens in data, without allocating. It treats quoted text,
// comments and block scalars as if they were YAML.
func countTokens(data []byte) (n int) {
	inScalar := false
	for i, c := range data {
		switch c {
		case ' ', '\t':
		case '-', ':':
			if end := i+1 == len(data) || strings.IndexByte(" \t\r\n-", data[i+1]) >= 0; c == ':' || end {
				n++
				inScalar = false
			} else if !inScalar {
				n++
				inScalar = true
			}
		case '[', ']', '{', '}', ',', '\'', '"', '\r', '\n', '?', '#', '@', '`':
			n++
			inScalar = false
		case '&', '*', '!', '%', '|', '>': // the indicator, the name after it, and the rest
			n += 3
			inScalar = false
		default:
			if !inScalar {
				n++
				inScalar = true
			}
		}
	}
	return n
}

// A counter tracks the nesting of collections in a list of tokens, in the same way as the library's parser.
type counter struct {
	tokens token.Tokens
	open   []level
	paths  int
	rare   map[token.Type]int
	empty  int
}

// A level is an open collection, in brackets or by indentation.
type level struct {
	bracket byte // '[', '{', or 0
	column  int  // of its keys or dashes; 0 in brackets
	keys    int
	path    int  // length of the path of its entries
	base    int  // length of its own path
	colon   bool // the current entry of the braces has a key with a colon
}

const pathIndex = 12 // bytes for "[123456]" in a path, with a margin

func (c *counter) count() error {
	c.rare = map[token.Type]int{}
	for i, t := range c.tokens {
		if err := c.token(i, t); err != nil {
			return err
		}
		if len(c.open) > maxDepth {
			return fault(t, "collections are nested more than %d deep", maxDepth)
		}
		if c.empty > maxRare {
			return fault(t, "more than %d empty values", maxRare)
		}
		if len(c.open) > 0 {
			c.paths += c.open[len(c.open)-1].path
		}
		if c.paths > maxPaths {
			return fault(t, "keys are too long for the number of values below them")
		}
	}
	return nil
}

func fault(t *token.Token, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: t}
}

func (c *counter) token(i int, t *token.Token) error {
	switch t.Type {
	case token.AnchorType, token.TagType, token.DirectiveType, token.MappingKeyType:
		if c.rare[t.Type]++; c.rare[t.Type] > maxRare {
			return fault(t, "more than %d of %q", maxRare, strings.TrimSpace(t.Value)[:1])
		}
		if t.Type == token.MappingKeyType {
			c.enter(t.Position.Column)
		}
	case token.AliasType:
		if c.rare[t.Type]++; c.rare[t.Type] > maxAlias {
			return fault(t, "more than %d aliases", maxAlias)
		}
	case token.DocumentHeaderType, token.DocumentEndType:
		if c.rare[t.Type]++; c.rare[t.Type] > maxRare {
			return fault(t, "more than %d documents", maxRare)
		}
		c.open = nil
	case token.SequenceStartType:
		c.push(level{bracket: '['}, pathIndex)
	case token.MappingStartType:
		c.push(level{bracket: '{'}, 0)
	case token.SequenceEndType, token.MappingEndType:
		if l := c.toBracket(); l != nil {
			c.endEntry(l, i)
			c.open = c.open[:len(c.open)-1]
		}
	case token.CollectEntryType:
		l := c.toBracket()
		if l == nil {
			return nil
		}
		c.endEntry(l, i)
		if l.keys++; l.bracket == '{' && l.keys > maxKeys {
			return fault(t, "a mapping has more than %d keys", maxKeys)
		}
	case token.SequenceEntryType:
		l := c.enter(t.Position.Column)
		l.path = max(l.path, l.base+pathIndex)
		if c.isEmptyValue(i, t) {
			c.empty++
		}
	case token.MappingValueType:
		return c.colon(i, t)
	}
	return nil
}

// colon counts a key, which consists of the tokens before the colon.
func (c *counter) colon(i int, t *token.Token) error {
	first, length := t, 0
	for j := i - 1; j >= 0 && isOfKey(c.tokens[j]) && c.tokens[j].Position.Line == t.Position.Line; j-- {
		first = c.tokens[j]
		length += len(first.Value)
	}
	if i > 0 && first == t && isOfKey(c.tokens[i-1]) { // a key of several lines
		first = c.tokens[i-1]
		length = len(first.Value)
	}
	for j := len(c.open) - 1; j >= 0; j-- {
		if c.open[j].bracket != 0 {
			c.open[j].colon = true
			break
		}
	}
	l := c.enter(first.Position.Column)
	l.path = l.base + length + 4
	if l.keys++; l.keys > maxKeys {
		return fault(t, "a mapping has more than %d keys", maxKeys)
	}
	if c.isEmptyValue(i, first) {
		c.empty++
	}
	return nil
}

func isOfKey(t *token.Token) bool {
	switch t.Type {
	case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.CollectEntryType,
		token.SequenceStartType, token.MappingStartType, token.DocumentHeaderType, token.DocumentEndType,
		token.CommentType:
		return false
	}
	return true
}

// isEmptyValue reports whether a dash, or a colon whose key begins with first, has no value.
func (c *counter) isEmptyValue(i int, first *token.Token) bool {
	for _, next := range c.tokens[i+1:] {
		switch next.Type {
		case token.CommentType:
			continue
		case token.CollectEntryType, token.MappingEndType, token.SequenceEndType:
			return true
		}
		return next.Position.Line > c.tokens[i].Position.Line && next.Position.Column <= first.Position.Column
	}
	return true
}

// enter returns the collection whose keys or dashes are in the given column. It becomes the innermost open collection.
func (c *counter) enter(column int) *level {
	for len(c.open) > 0 {
		last := &c.open[len(c.open)-1]
		if last.bracket != 0 || last.column < column {
			break
		}
		if last.column == column {
			return last
		}
		c.open = c.open[:len(c.open)-1]
	}
	return c.push(level{column: column}, 0)
}

func (c *counter) push(l level, path int) *level {
	l.base = 2
	if len(c.open) > 0 {
		l.base = c.open[len(c.open)-1].path
	}
	l.path = l.base + path
	c.open = append(c.open, l)
	return &c.open[len(c.open)-1]
}

// toBracket closes collections up to the innermost one in brackets, and returns it; nil if there is none.
func (c *counter) toBracket() *level {
	for n := len(c.open); n > 0; n-- {
		if c.open[n-1].bracket != 0 {
			c.open = c.open[:n]
			return &c.open[n-1]
		}
	}
	return nil
}

// endEntry ends an entry, and counts it as empty if it is a key in braces without a value.
func (c *counter) endEntry(l *level, i int) {
	if l.bracket == '{' && !l.colon && i > 0 && c.tokens[i-1].Type != token.MappingStartType {
		c.empty++
	}
	l.colon = false
}

// An expansion counts the nodes of a document and the bytes of its scalars. An alias counts as the node of its anchor,
// because the library and its users visit that node again for each alias.
type expansion struct {
	anchors map[string]size
	open    map[string]bool // anchors whose nodes are being counted
	total   size
}

type size struct{ nodes, text int }

func (s size) add(t size) size { return size{s.nodes + t.nodes, s.text + t.text} }

var errExpansion = errors.New("too many values after expanding aliases")

func checkExpansion(file *ast.File) error {
	e := &expansion{anchors: map[string]size{}, open: map[string]bool{}}
	for _, doc := range file.Docs {
		s, err := e.sizeOf(doc.Body)
		if err != nil {
			return err
		}
		e.total = e.total.add(s)
	}
	return nil
}

// sizeOf returns the size of a node. Its recursion is bounded by maxDepth.
func (e *expansion) sizeOf(n ast.Node) (s size, err error) {
	s.nodes = 1
	add := func(children ...ast.Node) {
		for _, child := range children {
			if err != nil {
				return
			}
			var one size
			one, err = e.sizeOf(child)
			s = s.add(one)
			if all := e.total.add(s); err == nil && (all.nodes > maxNodes || all.text > maxText) {
				err = fault(child.GetToken(), "%v", errExpansion)
			}
		}
	}
	switch n := n.(type) {
	case nil:
	case *ast.MappingNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.MappingValueNode:
		add(n.Key, n.Value)
	case *ast.MappingKeyNode:
		add(n.Value)
	case *ast.SequenceNode:
		add(n.Values...)
	case *ast.TagNode:
		add(n.Value)
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		was := e.open[name]
		e.open[name] = true
		add(n.Value)
		e.open[name] = was
		e.anchors[name] = s
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if e.open[name] {
			return s, fault(n.GetToken(), "alias *%s is within its own anchor", name)
		}
		s = s.add(e.anchors[name]) // the decoder reports unknown anchors
	default:
		if t := n.GetToken(); t != nil {
			s.text = len(t.Value)
		}
		if l, ok := n.(*ast.LiteralNode); ok {
			s.text = len(l.Value.Value)
		}
	}
	return s, err
}
