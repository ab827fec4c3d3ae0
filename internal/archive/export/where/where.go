// Package where parses and evaluates conditions that select pages of a crawl:
//
//	status == 200 && type == "text/html" && host ~ "\.de$"
//
// A condition compares columns (package row) with values. A value is a number, a text in single or double quotes, true
// or false. A time is written as a string; a prefix such as "2026-03" also works.
//
//	texts               == != < <= > >=, and ~ and !~ for a regular expression that is found in the text or not
//	numbers and times   == != < <= > >=
//
// Conditions are combined with &&, ||, ! and parentheses. In a text, a backslash is an ordinary character unless it
// precedes the text's own quote. A boolean column (noindex) is a condition by itself.
package where

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/row"
	"kumo/internal/base/advice"
)

// A Condition selects pages. It is safe for concurrent use.
type Condition struct {
	test      test
	needsBody bool // the condition needs columns from the record
}

// A test evaluates a condition or a part of one.
type test func(r *row.Row) bool

// Matcher returns a function for one goroutine that reports whether a page matches. It reads the record only if the
// condition needs it. If the record cannot be read, its columns are "" or 0.
func (c *Condition) Matcher() func(p *export.Page) (bool, error) {
	reader := row.NewReader(false)
	return func(p *export.Page) (bool, error) {
		if !c.needsBody {
			r := row.FromCapture(p.Capture)
			return c.test(&r), nil
		}
		r, err := reader.Read(p)
		if err != nil {
			return false, err
		}
		return c.test(r), nil
	}
}

// A column is a column with the function that returns its value: exactly one is set.
type column struct {
	name      string
	needsBody bool // needs the record
	text      func(*row.Row) string
	number    func(*row.Row) int
	time      func(*row.Row) time.Time
	flag      func(*row.Row) bool
}

func (c *column) kind() string {
	switch {
	case c.text != nil:
		return "a text"
	case c.number != nil:
		return "a number"
	case c.time != nil:
		return "a time"
	}
	return "true or false"
}

// columns returns the columns of a row that are single values.
var columns = sync.OnceValue(func() (all []column) {
	for _, of := range row.Columns() {
		c := column{name: of.Name, needsBody: of.NeedsRecord}
		switch unknown := of.Zero().(type) {
		case string:
			c.text = func(r *row.Row) string { return valueOf(&of, r, unknown) }
		case int64:
			c.number = func(r *row.Row) int { return int(valueOf(&of, r, unknown)) }
		case bool:
			c.flag = func(r *row.Row) bool { return valueOf(&of, r, unknown) }
		case time.Time:
			c.time = func(r *row.Row) time.Time { return valueOf(&of, r, unknown) }
		default:
			continue
		}
		all = append(all, c)
	}
	return all
})

// valueOf returns a column's value in a row, or unknown.
func valueOf[T any](c *row.Column, r *row.Row, unknown T) T {
	if v, known := c.Value(r); known {
		return v.(T)
	}
	return unknown
}

// Columns returns the names of the columns.
func Columns() (names []string) {
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

func columnNamed(name string) *column {
	all := columns()
	if i := slices.IndexFunc(all, func(c column) bool { return c.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// unknownColumn returns an error text with the nearest column and the list of all.
func unknownColumn(name string) string {
	text := fmt.Sprintf("unknown column %q", name)
	if best := advice.Nearest(name, Columns()); best != "" {
		text += fmt.Sprintf("; did you mean %s?", best)
	}
	return text + " Columns: " + strings.Join(Columns(), ", ")
}

// compare returns the test of a column, an operator and a value.
func (c *column) compare(op, value token) (test, error) {
	switch {
	case c.text != nil:
		return c.compareText(op, value)
	case c.time != nil:
		return c.compareTime(op, value)
	case c.number != nil:
		return c.compareNumber(op, value)
	}
	want := value.text == "true"
	if value.kind != word || !want && value.text != "false" {
		return nil, value.errorf("%s is %s", c.name, c.kind())
	}
	switch op.text {
	case "==":
		return func(r *row.Row) bool { return c.flag(r) == want }, nil
	case "!=":
		return func(r *row.Row) bool { return c.flag(r) != want }, nil
	}
	return nil, op.errorf("%s is true or false: use == or !=", c.name)
}

func (c *column) compareText(op, value token) (test, error) {
	if value.kind != text {
		return nil, value.errorf("%s is a text: quote the value, as in %s %s \"%s\"", c.name, c.name, op.text, value.text)
	}
	if op.text == "~" || op.text == "!~" {
		re, err := regexp.Compile(value.text)
		if err != nil {
			return nil, value.errorf("%w", err)
		}
		found := op.text == "~"
		return func(r *row.Row) bool { return re.MatchString(c.text(r)) == found }, nil
	}
	want, holds := value.text, comparisons[op.text]
	return func(r *row.Row) bool { return holds(cmp.Compare(c.text(r), want)) }, nil
}

func (c *column) compareNumber(op, value token) (test, error) {
	want, err := strconv.Atoi(value.text)
	if value.kind != number || err != nil {
		return nil, value.errorf("%s is a number, as in %s %s 200", c.name, c.name, "==")
	}
	holds := comparisons[op.text]
	if holds == nil {
		return nil, op.errorf("%s is a number: %s needs a text", c.name, op.text)
	}
	return func(r *row.Row) bool { return holds(cmp.Compare(c.number(r), want)) }, nil
}

// timeLayouts are the accepted forms of a time.
var timeLayouts = []string{
	"2006",
	"2006-01",
	"2006-01-02",
	"2006-01-02T15:04",
	"2006-01-02 15:04",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05",
	time.RFC3339,
}

// compareTime treats a partial time as a span: == matches times within it, > matches times after its end.
func (c *column) compareTime(op, value token) (test, error) {
	if value.kind == number && len(value.text) == 4 {
		value.kind = text // a year
	}
	holds := comparisons[op.text]
	if holds == nil {
		return nil, op.errorf("%s is a time: %s needs a text", c.name, op.text)
	}
	for n, layout := range timeLayouts {
		at, err := time.Parse(layout, value.text)
		if err != nil || value.kind != text {
			continue
		}
		end := at.Add(time.Second)
		switch n {
		case 0:
			end = at.AddDate(1, 0, 0)
		case 1:
			end = at.AddDate(0, 1, 0)
		case 2:
			end = at.AddDate(0, 0, 1)
		case 3, 4:
			end = at.Add(time.Minute)
		}
		return func(r *row.Row) bool {
			switch t := c.time(r); {
			case t.Before(at):
				return holds(-1)
			case t.Before(end):
				return holds(0)
			}
			return holds(1)
		}, nil
	}
	return nil, value.errorf("%s is a time in UTC, as \"2026-03-01\" or \"2026-03-01T10:00:00Z\"", c.name)
}

// comparisons maps operators to functions of the result of a comparison (-1, 0, 1).
var comparisons = map[string]func(int) bool{
	"==": func(n int) bool { return n == 0 }, "!=": func(n int) bool { return n != 0 },
	"<": func(n int) bool { return n < 0 }, "<=": func(n int) bool { return n <= 0 },
	">": func(n int) bool { return n > 0 }, ">=": func(n int) bool { return n >= 0 },
}
