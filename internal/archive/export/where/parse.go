package where

import (
	"fmt"
	"strings"

	"kumo/internal/archive/export/row"
)

// Parse parses a condition. Errors contain the position and a correct example.
func Parse(expr string) (*Condition, error) {
	tokens, err := scan(expr)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	is, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if t := p.next(); t.kind != end {
		return nil, t.errorf("unexpected %s: join conditions with && or ||", t)
	}
	return &Condition{is, p.needsBody}, nil
}

// A kind is the kind of a token.
type kind int

const (
	end kind = iota
	word
	number
	text
	operator
)

type token struct {
	kind kind
	text string
	at   int // byte offset in the expression, from 0
	in   string
}

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case text:
		return fmt.Sprintf("%q", t.text)
	}
	return t.text
}

// errorf returns an error with the token's position.
func (t token) errorf(format string, args ...any) error {
	return fmt.Errorf("%q, at byte %d: %w", t.in, t.at+1, fmt.Errorf(format, args...))
}

const maxBytes = 64 << 10 // of an expression

func scan(in string) (all []token, err error) {
	if len(in) > maxBytes {
		return nil, fmt.Errorf("too long: %d bytes, the limit is %d", len(in), maxBytes)
	}
	for i := 0; ; {
		for i < len(in) && strings.IndexByte(" \t\r\n", in[i]) >= 0 {
			i++
		}
		t := token{at: i, in: in}
		if i == len(in) {
			return append(all, t), nil
		}
		switch c := in[i]; {
		case isLetter(c):
			t.kind, t.text = word, run(in[i:], func(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' })
			i += len(t.text)
		case isDigit(c) || c == '-':
			t.kind, t.text = number, in[i:i+1]+run(in[i+1:], isDigit)
			i += len(t.text)
		case c == '"' || c == '\'':
			t.kind = text
			var n int
			if t.text, n = quoted(in[i:]); n == 0 {
				return nil, t.errorf("missing %c at the end of the text", c)
			}
			i += n
		default:
			t.kind, t.text = operator, operatorAt(in[i:])
			if t.text == "" {
				return nil, t.errorf("unexpected %q%s", c, hint(c))
			}
			i += len(t.text)
		}
		all = append(all, t)
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func run(in string, is func(byte) bool) string {
	n := 0
	for n < len(in) && is(in[n]) {
		n++
	}
	return in[:n]
}

// quoted returns the text at the beginning of in, and its length with the quotes; 0 if the closing quote is missing.
func quoted(in string) (string, int) {
	var b strings.Builder
	for i := 1; i < len(in); i++ {
		switch {
		case in[i] == in[0]:
			return b.String(), i + 1
		case in[i] == '\\' && i+1 < len(in) && in[i+1] == in[0]:
			i++
		}
		b.WriteByte(in[i])
	}
	return "", 0
}

var operators = []string{"&&", "||", "==", "!=", "<=", ">=", "!~", "~", "<", ">", "!", "(", ")"}

func operatorAt(in string) string {
	for _, s := range operators {
		if strings.HasPrefix(in, s) {
			return s
		}
	}
	return ""
}

func hint(c byte) string {
	switch c {
	case '=':
		return ": use == to compare"
	case '&', '|':
		return fmt.Sprintf(": use %c%c to join conditions", c, c)
	}
	return ""
}

type parser struct {
	tokens    []token
	needsBody bool
}

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept consumes an operator if it is next.
func (p *parser) accept(what string) bool {
	if t := p.tokens[0]; t.kind != operator || t.text != what {
		return false
	}
	p.next()
	return true
}

const maxNesting = 200 // nested parentheses and !

func (p *parser) or(depth int) (test, error) {
	return p.joined(depth, "||", p.and, func(a, b test) test { return func(r *row.Row) bool { return a(r) || b(r) } })
}

func (p *parser) and(depth int) (test, error) {
	return p.joined(depth, "&&", p.not, func(a, b test) test { return func(r *row.Row) bool { return a(r) && b(r) } })
}

func (p *parser) joined(depth int, by string, part func(int) (test, error), join func(a, b test) test) (test, error) {
	all, err := part(depth)
	for err == nil && p.accept(by) {
		var next test
		if next, err = part(depth); err == nil {
			all = join(all, next)
		}
	}
	return all, err
}

func (p *parser) not(depth int) (test, error) {
	if depth > maxNesting {
		return nil, p.tokens[0].errorf("too many nested parentheses")
	}
	if p.accept("!") {
		is, err := p.not(depth + 1)
		return func(r *row.Row) bool { return !is(r) }, err
	}
	if !p.accept("(") {
		return p.comparison()
	}
	is, err := p.or(depth + 1)
	if err == nil && !p.accept(")") {
		err = p.tokens[0].errorf("missing ) before %s", p.tokens[0])
	}
	return is, err
}

func (p *parser) comparison() (test, error) {
	name := p.next()
	if name.kind != word {
		return nil, name.errorf("missing column before %s, as in status == 200", name)
	}
	c := columnNamed(name.text)
	if c == nil {
		return nil, name.errorf("%s", unknownColumn(name.text))
	}
	p.needsBody = p.needsBody || c.needsBody
	op := p.tokens[0]
	isOperator := op.kind == operator && (comparisons[op.text] != nil || op.text == "~" || op.text == "!~")
	if !isOperator {
		if c.flag != nil {
			return c.flag, nil
		}
		return nil, op.errorf("%s is %s: missing comparison before %s, as in %s", c.name, c.kind(), op, c.example())
	}
	p.next()
	value := p.next()
	if value.kind == end || value.kind == operator {
		return nil, value.errorf("missing value before %s, as in %s", value, c.example())
	}
	return c.compare(op, value)
}

// example returns a valid comparison.
func (c *column) example() string {
	switch {
	case c.number != nil:
		return c.name + " == 200"
	case c.time != nil:
		return c.name + ` >= "2026-03-01"`
	case c.flag != nil:
		return "!" + c.name
	}
	return c.name + ` ~ "^a"`
}
