// Package yaml encodes YAML, and decodes it with bounded memory and time.
//
// It is the only package that imports the YAML library. The library builds the path of each node, resolves merges again
// for each alias, and inserts into slices. So a file of 100 KB can cost gigabytes, and files of a crawl's folder may
// come from a stranger.
//
// Decoding fails with an [Error] that has a line number if a file exceeds a limit. The limits are far above the size of
// handwritten files. The largest files are lists of overrides; about 50,000 overrides fit.
package yaml

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Types of the library that users of this package see.
type (
	// Error is a syntax or decoding error with a position; see [Position].
	Error = yaml.Error
	// MapSlice is a mapping in the order of the file.
	MapSlice = yaml.MapSlice
	// Option changes how [Unmarshal] decodes.
	Option = yaml.DecodeOption
	// Node is a value of a document.
	Node = ast.Node
	// BoolNode is true or false.
	BoolNode = ast.BoolNode
	// FloatNode is a number with a fraction.
	FloatNode = ast.FloatNode
	// IntegerNode is a whole number.
	IntegerNode = ast.IntegerNode
	// LiteralNode is a string of several lines.
	LiteralNode = ast.LiteralNode
	// MappingNode is a mapping.
	MappingNode = ast.MappingNode
	// MappingValueNode is a key of a mapping with its value.
	MappingValueNode = ast.MappingValueNode
	// SequenceNode is a list.
	SequenceNode = ast.SequenceNode
	// StringNode is a string on one line.
	StringNode = ast.StringNode
)

// MaxSize is the size of the largest file that is decoded, in bytes.
const MaxSize = 16 << 20

// Strict makes unknown keys of structs an error.
func Strict() Option { return yaml.Strict() }

// Ordered decodes mappings into [MapSlice] where the target is an interface.
func Ordered() Option { return yaml.UseOrderedMap() }

// ReadFile reads a file for [Unmarshal] or [Parse]. It fails if the file is larger than [MaxSize].
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("read %s: %w", name, errSize)
	}
	return data, err
}

// Unmarshal decodes the first document of data into v.
func Unmarshal(data []byte, v any, opts ...Option) error {
	if err := Check(data); err != nil {
		return err
	}
	return protect(func() error { return yaml.UnmarshalWithOptions(data, v, opts...) })
}

// Parse returns the bodies of the documents in data, without those that are empty.
func Parse(data []byte) ([]Node, error) {
	file, err := parse(data)
	if err != nil {
		return nil, err
	}
	var bodies []Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	return bodies, nil
}

// Decode decodes a node of [Parse] into v.
func Decode(n Node, v any) error { return protect(func() error { return yaml.NodeToValue(n, v) }) }

// IsNull reports whether a node is null, written or not.
func IsNull(n Node) bool { return n.Type() == ast.NullType }

// Line returns the line of a node, from 1; 0 if it has none.
func Line(n Node) int {
	if n == nil {
		return 0
	}
	return line(n.GetToken())
}

// Position returns the message and the line of an error of this package; line 0 if it has none.
func Position(err error) (message string, at int) {
	if y, ok := errors.AsType[Error](err); ok {
		return y.GetMessage(), line(y.GetToken())
	}
	return err.Error(), 0
}

func line(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// Marshal encodes v as YAML.
func Marshal(v any) ([]byte, error) { return yaml.Marshal(v) }

// MarshalLine encodes v as JSON, which is YAML, in a line.
func MarshalLine(v any) ([]byte, error) { return yaml.MarshalWithOptions(v, yaml.JSON()) }

func parse(data []byte) (file *ast.File, err error) {
	tokens, err := tokenize(data)
	if err != nil {
		return nil, err
	}
	err = protect(func() error {
		if file, err = parser.Parse(tokens, 0); err != nil {
			return err
		}
		return checkExpansion(file)
	})
	return file, err
}

// protect calls f, shortens its errors, and turns panics into errors. The library panics for some files that are not
// YAML, such as "[?".
func protect(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("not YAML: %v", cause)
		}
	}()
	return shorten(f())
}

// Check reports whether data is within the limits, and finds syntax errors as far as the tokens show them.
func Check(data []byte) error {
	tokens, err := tokenize(data)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.Type == token.AliasType {
			_, err = parse(data) // an alias counts as its anchor's node, so parse
			return err
		}
	}
	return nil
}

// shorten truncates the tokens around an error. Otherwise the error for a long line would be long, and slow to format.
func shorten(err error) error {
	const most, longest = 60, 200
	y, ok := errors.AsType[Error](err)
	if !ok || y.GetToken() == nil {
		return err
	}
	cut := func(t *token.Token) {
		t.Origin, t.Value = cutText(t.Origin, longest), cutText(t.Value, longest)
	}
	t := y.GetToken()
	cut(t)
	for i, before := 0, t.Prev; before != nil; i, before = i+1, before.Prev {
		if cut(before); i == most {
			before.Prev = nil
		}
	}
	for i, after := 0, t.Next; after != nil; i, after = i+1, after.Next {
		if cut(after); i == most {
			after.Next = nil
		}
	}
	return err
}

func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for i := range s {
		if i >= most {
			return s[:i]
		}
	}
	return s
}
