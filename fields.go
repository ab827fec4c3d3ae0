package kumo

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"kumo/internal/content/fields/tree"
	"kumo/internal/content/fields/value"
)

// Fields reads a page into a struct, whose fields say by their tags where on the page they stand:
//
//	type Product struct {
//		Title   string    `kumo:"h1,required"`
//		Price   float64   `kumo:".price"`         // 1.234,56 € is 1234.56
//		Author  string    `kumo:"a.author@href"`  // an attribute
//		Image   string    `kumo:"img@src,url"`    // and that as an absolute URL
//		Day     time.Time `kumo:"time@datetime"`  // as dates are written in some thirty languages
//		Tags    []string  `kumo:".tag"`           // all that match
//		Reviews []Review  `kumo:".review"`        // a struct of each, by the tags of Review
//	}
//
// A tag is a CSS selector, the first match of which counts, with @ and an attribute behind it or not, and then words
// with commas before them: required, url, html (what is in the element), number (for a string: the number as JSON has
// it). Fields of numbers are read as kumo crawl --fields does (see docs/reference/field-rules.md); a bool is true where
// the selector matches. Fields without a tag are left alone.
//
// What is not on the page keeps its zero value, and so does what cannot be read, of which the error speaks, as it does
// of what is required and missing. The error is nil only if all is well.
func Fields[T any](p *Page) (T, error) {
	var into T
	v := reflect.ValueOf(&into).Elem()
	pl, err := planOf(v.Type())
	if err != nil {
		return into, fmt.Errorf("kumo: Fields of %s: %w", v.Type(), err)
	}
	t := p.parsed()
	if t == nil {
		return into, fmt.Errorf("kumo: fields of %s: it is %s, not HTML", p.URL, p.Type)
	}
	t.ResetSteps()
	r := fieldReader{page: p, tree: t}
	r.object(v, pl, 0, "")
	if err := errors.Join(r.faults...); err != nil {
		return into, fmt.Errorf("kumo: fields of %s: %w", p.URL, err)
	}
	return into, nil
}

// A plan is how a struct is read.
type plan []plannedField

type plannedField struct {
	index    int
	name     string
	selector *tree.Selector
	attr     string
	as       string // url, html, number or ""
	required bool
	inner    plan // of a struct; nil for a value
}

var plans sync.Map // of plan or error, by reflect.Type

func planOf(t reflect.Type) (plan, error) {
	if p, known := plans.Load(t); known {
		if err, bad := p.(error); bad {
			return nil, err
		}
		return p.(plan), nil
	}
	p, err := makePlan(t, nil)
	if err != nil {
		plans.Store(t, err)
		return nil, err
	}
	plans.Store(t, p)
	return p, nil
}

var (
	timeType = reflect.TypeFor[time.Time]()
	atAttr   = regexp.MustCompile(`^(.*[^\s@])@([\pL_:][\pL\pN_:.-]*)$`)
)

// makePlan reads a struct's tags. within are the types that it is in.
func makePlan(t reflect.Type, within []reflect.Type) (plan, error) {
	if t.Kind() != reflect.Struct || t == timeType {
		return nil, fmt.Errorf("%s is no struct with tags", t)
	}
	for _, outer := range within {
		if outer == t {
			return nil, fmt.Errorf("%s is in itself, without end", t)
		}
	}
	p := plan{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, has := f.Tag.Lookup("kumo")
		if !has {
			continue
		}
		one, err := planField(f, tag)
		if err == nil {
			one.index = i
			one.inner, err = innerPlan(f.Type, append(within, t))
		}
		if err == nil && one.inner != nil && (one.attr != "" || one.as != "") {
			err = errors.New("a struct is made of an element, and not of what is taken of it")
		}
		if err != nil {
			return nil, fmt.Errorf("field %s, kumo:%q: %w", f.Name, tag, err)
		}
		p = append(p, one)
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("no field of %s has a tag, as in kumo:\"h1\"", t)
	}
	return p, nil
}

func planField(f reflect.StructField, tag string) (one plannedField, err error) {
	one.name = f.Name
	if !f.IsExported() {
		return one, errors.New("the field is not exported")
	}
words:
	for {
		i := strings.LastIndexByte(tag, ',')
		if i < 0 {
			break
		}
		switch word := strings.TrimSpace(tag[i+1:]); word {
		case "required":
			one.required = true
		case "url", "html", "number":
			one.as = word
		default:
			break words // part of the selector
		}
		tag = tag[:i]
	}
	if m := atAttr.FindStringSubmatch(tag); m != nil {
		tag, one.attr = m[1], strings.ToLower(m[2])
	}
	if one.selector, err = tree.Compile(tag); err == nil && one.attr == "" {
		one.attr = one.selector.Take.Attr
	}
	return one, err
}

// innerPlan is how the structs of a field are read, nil if it has values.
func innerPlan(t reflect.Type, within []reflect.Type) (plan, error) {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		if t == timeType {
			return nil, nil
		}
		return makePlan(t, within)
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return nil, nil
	}
	return nil, fmt.Errorf("a %s cannot be read: texts, numbers, bool, time.Time, structs with tags, and slices of "+
		"them can", t)
}

// A fieldReader reads a page into a struct.
type fieldReader struct {
	page   *Page
	tree   *tree.Tree
	faults []error
}

const maxFaults = 20

func (r *fieldReader) fault(format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fmt.Errorf(format, args...))
	}
}

func (r *fieldReader) object(v reflect.Value, p plan, scope int, path string) {
	for i := range p {
		r.field(v.Field(p[i].index), &p[i], scope, path+p[i].name)
	}
}

func (r *fieldReader) field(v reflect.Value, p *plannedField, scope int, path string) {
	most := 1
	if v.Kind() == reflect.Slice {
		most = maxFound
	}
	found := false
	for _, node := range r.tree.Find(p.selector, scope, most) {
		into := v
		if v.Kind() == reflect.Slice {
			into = reflect.New(v.Type().Elem()).Elem()
		}
		if !r.value(into, p, node, path) {
			continue
		}
		if found = true; v.Kind() == reflect.Slice {
			v.Set(reflect.Append(v, into))
		}
	}
	if !found && p.required {
		r.fault("%s: it is required, and not there", path)
	}
}

// value reads one value, and reports whether there was one.
func (r *fieldReader) value(v reflect.Value, p *plannedField, node int, path string) bool {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if p.inner != nil {
		r.object(v, p.inner, node, path+".")
		return true
	}
	text, has := r.text(p, node)
	if v.Kind() == reflect.Bool {
		v.SetBool(has)
		return has
	}
	if text == "" {
		return false
	}
	if err := r.set(v, p, text); err != nil {
		r.fault("%s: %q: %w", path, text[:min(len(text), 60)], err)
		return false
	}
	return true
}

// text is what a field takes of an element, and whether that has it.
func (r *fieldReader) text(p *plannedField, node int) (text string, has bool) {
	switch {
	case p.attr != "":
		text, has = r.tree.Attr(node, p.attr)
		return tree.Collapse(text), has
	case p.as == "html":
		return r.tree.HTML(node), true
	case p.selector.Take.Own:
		return r.tree.OwnText(node), true
	}
	return r.tree.Text(node), true
}

func (r *fieldReader) set(v reflect.Value, p *plannedField, text string) (err error) {
	switch {
	case p.as == "url":
		if text, err = r.page.resolve(text); err != nil {
			return fmt.Errorf("no URL: %w", err)
		}
	case p.as == "number" || v.Kind() != reflect.String && v.Type() != timeType:
		if text, err = value.Number(text, ""); err != nil {
			return fmt.Errorf("no number: %w", err)
		}
	}
	switch {
	case v.Type() == timeType:
		t, err := dateOf(text)
		if err != nil {
			return fmt.Errorf("no date: %w", err)
		}
		v.Set(reflect.ValueOf(t))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.CanFloat():
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return err
		}
		v.SetFloat(f)
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("no whole number of %d bits", v.Type().Bits())
		}
		v.SetInt(n)
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("no whole number of %d bits from 0 on", v.Type().Bits())
		}
		v.SetUint(n)
	}
	return nil
}

// dateOf is a date as value.Date reads it; in UTC where it says no zone.
func dateOf(text string) (t time.Time, err error) {
	iso, err := value.Date(text)
	if err != nil {
		return t, err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly, "2006-01"} {
		if t, err = time.Parse(layout, iso); err == nil {
			return t, nil
		}
	}
	return t, err
}
