package fields

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/antchfx/xpath"
	"golang.org/x/net/html"

	"kumo/internal/content/fields/tree"
)

// xpaths is a pool of copies of one XPath expression, which keeps state during an evaluation.
type xpaths struct{ pool sync.Pool }

func compileXPath(text string) (*xpaths, error) {
	if text == "" {
		return nil, errors.New("want an XPath expression")
	}
	if _, err := xpath.Compile(text); err != nil {
		return nil, fmt.Errorf("%q is not an XPath expression: %w", text, err)
	}
	return &xpaths{pool: sync.Pool{New: func() any { return xpath.MustCompile(text) }}}, nil
}

// A node is a match of an XPath expression: an element or text, or an attribute of an element.
type node struct{ at, attr int } // attr is -1 for an element or text

// find evaluates the expression at a node. It returns nodes or a text. If the tree's steps are used up, or the library
// panics, it returns the matches so far.
func (x *xpaths) find(t *tree.Tree, scope, most int) (found []node, text string) {
	e := x.pool.Get().(*xpath.Expr)
	defer func() {
		if p := recover(); p == nil { // after a panic, its state is unknown
			x.pool.Put(e)
		}
	}()
	switch v := e.Evaluate(&navigator{t: t, i: scope, attr: -1}).(type) {
	case *xpath.NodeIterator:
		for len(found) < most && v.MoveNext() {
			if n, is := v.Current().(*navigator); is {
				found = append(found, node{n.i, n.attr})
			}
		}
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		text = strconv.FormatBool(v)
	}
	return found, text
}

var errSteps = errors.New("too many steps")

var _ xpath.NodeNavigator = (*navigator)(nil)

// A navigator moves in a tree and uses up its steps.
type navigator struct {
	t       *tree.Tree
	i, attr int
}

func (n *navigator) spend(steps int) {
	if !n.t.Spend(steps) {
		panic(errSteps)
	}
}

func (n *navigator) node() *html.Node { return n.t.Node(n.i) }

func (n *navigator) NodeType() xpath.NodeType {
	switch {
	case n.attr >= 0:
		return xpath.AttributeNode
	case n.i == 0:
		return xpath.RootNode
	case n.node().Type == html.TextNode:
		return xpath.TextNode
	}
	return xpath.ElementNode
}

// name returns the name of an element or attribute, with its prefix.
func (n *navigator) name() string {
	switch {
	case n.attr >= 0:
		return n.node().Attr[n.attr].Key
	case n.NodeType() == xpath.ElementNode:
		return n.node().Data
	}
	return ""
}

func (n *navigator) LocalName() string {
	name := n.name()
	return name[strings.IndexByte(name, ':')+1:]
}

func (n *navigator) Prefix() string {
	name := n.name()
	return name[:max(0, strings.IndexByte(name, ':'))]
}

func (n *navigator) Value() string {
	switch {
	case n.attr >= 0:
		return n.node().Attr[n.attr].Val
	case n.node().Type == html.TextNode:
		return n.node().Data
	}
	end := n.t.End(n.i)
	n.spend(end - n.i)
	var b strings.Builder
	for j := n.i; j < end && b.Len() < tree.MaxText; j++ {
		if at := n.t.Node(j); at.Type == html.TextNode {
			b.WriteString(at.Data)
		}
	}
	return b.String()
}

func (n *navigator) Copy() xpath.NodeNavigator {
	n.spend(1)
	c := *n
	return &c
}

func (n *navigator) MoveToRoot() { n.i, n.attr = 0, -1 }

func (n *navigator) MoveToParent() bool {
	n.spend(1)
	if n.attr >= 0 {
		n.attr = -1
		return true
	}
	if n.i == 0 {
		return false
	}
	n.i = n.t.Parent(n.i)
	return true
}

func (n *navigator) MoveToNextAttribute() bool {
	n.spend(1)
	if n.attr+1 >= len(n.node().Attr) {
		return false
	}
	n.attr++
	return true
}

func (n *navigator) MoveToChild() bool {
	n.spend(1)
	if n.attr >= 0 || n.i+1 >= n.t.End(n.i) {
		return false
	}
	n.i++
	return true
}

func (n *navigator) MoveToFirst() bool {
	n.spend(1)
	if n.attr >= 0 || n.i == 0 || n.node().PrevSibling == nil {
		return false
	}
	n.i = n.t.Parent(n.i) + 1
	return true
}

func (n *navigator) MoveToNext() bool {
	n.spend(1)
	if n.attr >= 0 || n.i == 0 || n.node().NextSibling == nil {
		return false
	}
	n.i = n.t.End(n.i)
	return true
}

func (n *navigator) MoveToPrevious() bool {
	n.spend(1)
	if n.attr >= 0 || n.i == 0 || n.node().PrevSibling == nil {
		return false
	}
	up, before := n.t.Parent(n.i), n.i-1
	for n.t.Parent(before) != up {
		n.spend(1)
		before = n.t.Parent(before)
	}
	n.i = before
	return true
}

func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	o, is := other.(*navigator)
	if !is || o.t != n.t {
		return false
	}
	n.i, n.attr = o.i, o.attr
	return true
}
