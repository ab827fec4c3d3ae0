package check

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kumo/internal/base/field"
)

// Print writes a reader's output as text: a line for each field, then a table for each list. An output with a single
// string is written as that string. Input from the network cannot move the cursor or change the writing direction.
func Print(w io.Writer, answer any) error {
	var s printer
	if a, ok := answer.(interface{ show(*printer) }); ok {
		a.show(&s)
	} else {
		s.fields(reflect.ValueOf(answer))
	}
	s.endBlock()
	_, err := w.Write(s.text.Bytes())
	return err
}

// A printer builds a text of blocks separated by empty lines. Columns are aligned within a block.
type printer struct {
	text  bytes.Buffer
	block [][]string
}

const (
	maxWidth = 72 // widest aligned cell of a column; longer cells push the rest of their row to the right
	none     = "none"
)

// row adds a row of cells to the block.
func (s *printer) row(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	s.block = append(s.block, cells)
}

// endBlock ends the block.
func (s *printer) endBlock() {
	var widths []int
	for _, cells := range s.block {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(c); n <= maxWidth {
				widths[i] = max(widths[i], n)
			}
		}
	}
	if len(s.block) > 0 && s.text.Len() > 0 {
		s.text.WriteByte('\n')
	}
	for _, cells := range s.block {
		var line strings.Builder
		for i, c := range cells {
			fmt.Fprintf(&line, "%-*s  ", widths[i], c)
		}
		s.text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	s.block = nil
}

// fields adds a struct.
func (s *printer) fields(v reflect.Value) {
	if v.NumField() == 1 && v.Field(0).Kind() == reflect.String {
		s.row(v.Field(0).String())
		return
	}
	var lists, texts []func()
	for f, value := range v.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = strings.ReplaceAll(name, "_", " ")
		switch {
		case opts != "" && value.IsZero():
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			lists = append(lists, func() { s.list(name, value) })
		case value.Kind() == reflect.String && strings.Contains(value.String(), "\n"):
			texts = append(texts, func() { s.lines(name, value.String()) })
		default:
			s.field(name, values(value)...)
		}
	}
	for _, add := range append(lists, texts...) {
		s.endBlock()
		add()
	}
}

// field adds a field with its values, one a line.
func (s *printer) field(name string, values ...string) {
	if len(values) == 0 {
		values = []string{none}
	}
	for _, v := range values {
		s.row(name, v)
		name = ""
	}
}

// pairs adds fields, given as names and values in turn.
func (s *printer) pairs(all ...string) {
	for i := 0; i < len(all); i += 2 {
		s.field(all[i], cmp.Or(all[i+1], none))
	}
}

// list adds a slice of structs as a table.
func (s *printer) list(name string, list reflect.Value) {
	if list.Len() == 0 {
		s.field(name)
		return
	}
	var head []string
	for f := range list.Type().Elem().Fields() {
		column, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		head = append(head, strings.ReplaceAll(column, "_", " "))
	}
	s.row(head...)
	for i := range list.Len() {
		var cells []string
		for _, value := range list.Index(i).Fields() {
			cell := ""
			if !value.IsZero() {
				cell = strings.Join(values(value), ", ")
			}
			cells = append(cells, cell)
		}
		s.row(cells...)
	}
}

// lines adds a text of several lines.
func (s *printer) lines(name, text string) {
	s.row(name + ":")
	for line := range strings.Lines(text) {
		s.row(strings.TrimRight(line, "\r\n"))
	}
}

// values formats a field's values.
func values(v reflect.Value) (words []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return values(v.Elem())
		}
	case reflect.String:
		if v.String() != "" {
			return []string{v.String()}
		}
	case reflect.Bool:
		return []string{map[bool]string{false: "no", true: "yes"}[v.Bool()]}
	case reflect.Slice:
		for i := range v.Len() {
			words = append(words, values(v.Index(i))...)
		}
		return words
	case reflect.Map:
		for k, e := range v.Seq2() {
			words = append(words, fmt.Sprintf("%v=%v", k, e))
		}
		slices.Sort(words)
		return words
	default:
		return []string{fmt.Sprint(v)}
	}
	return []string{none}
}

// printable escapes characters that a terminal would interpret.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, isUnsafe) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isUnsafe(r) {
			fmt.Fprintf(&b, "\\u{%x}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isUnsafe reports whether a character is a control, a line terminator, or an override of the writing direction.
func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || field.IsBidiControl(r)
}
