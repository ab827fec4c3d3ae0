package row

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/page"
)

// A Column is a member of a Row, of its Visit, or of the Visit's Usage.
type Column struct {
	Name        string // in JSON and CSV
	NeedsRecord bool   // the column is known only after reading the record
	index       []int
	kind        reflect.Type
}

// Columns returns the columns of a row, in order. Those about usage are the last, so that readers of older tables find
// the others where they were.
var Columns = sync.OnceValue(func() (all []Column) {
	var last []Column
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" || name == "-":
		case f.Type == reflect.TypeFor[*page.Usage]():
			for _, of := range reflect.VisibleFields(f.Type.Elem()) {
				if sub, _, _ := strings.Cut(of.Tag.Get("json"), ","); sub != "" {
					last = append(last, Column{name + "." + sub, false, slices.Concat(f.Index, of.Index), of.Type})
				}
			}
		case name == "withheld":
			last = append(last, Column{name, false, f.Index, f.Type})
		default:
			all = append(all, Column{name, f.Tag.Get("in") == "record", f.Index, f.Type})
		}
	}
	return append(all, last...)
})

// Value returns the column's value: a string, int64, bool, time.Time or []Variant. It returns false if it is unknown.
func (c *Column) Value(r *Row) (any, bool) {
	v, err := reflect.ValueOf(r).Elem().FieldByIndexErr(c.index)
	if err != nil { // the visit or its usage is nil
		return nil, false
	}
	switch v := v.Interface().(type) {
	case int:
		return int64(v), c.Name != "depth" || v >= 0
	case string, int64, bool, time.Time, []Variant:
		return v, true
	case fmt.Stringer: // an address; its zero value means unknown
		return v.String(), !reflect.ValueOf(v).IsZero()
	default:
		panic("kumo: a column of type " + c.kind.String()) // the test of columns finds it
	}
}

// Zero returns the zero value of the type that Value returns.
func (c *Column) Zero() any {
	switch c.kind {
	case reflect.TypeFor[int](), reflect.TypeFor[int64]():
		return int64(-1)
	case reflect.TypeFor[bool]():
		return false
	case reflect.TypeFor[time.Time]():
		return time.Time{}
	case reflect.TypeFor[[]Variant]():
		return []Variant(nil)
	}
	return ""
}
