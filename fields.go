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

// Fields reads a page into a struct. The tags of the struct's fields select the parts of the page:
//
//	type Product struct {
//		Title   string    `kumo:"h1,required"`
//		Price   float64   `kumo:".price"`         // 1.234,56 € is 1234.56
//		Author  string    `kumo:"a.author@href"`  // an attribute
//		Image   string    `kumo:"img@src,url"`    // an attribute as an absolute URL
//		Day     time.Time `kumo:"time@datetime"`  // date formats of some thirty languages
//		Tags    []string  `kumo:".tag"`           // all matches
//		Reviews []Review  `kumo:".review"`        // a struct for each match, by the tags of Review
//	}
//
// A tag is a CSS selector; its first match counts. An attribute can follow after @. Options follow after
// commas: required, url, html (the content of the element as HTML), number (for a string: the number in JSON format).
// Numbers are parsed as by kumo crawl --fields (see docs/reference/field-rules.md). A bool is true if the selector
// matches. Fields without a tag are not changed.
//
// Fields that are not on the page, or cannot be parsed, keep their zero value. The error lists the values that cannot
// be parsed and the required ones that are missing; otherwise it is nil.
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

// A plan describes how to fill a struct.
type plan []plannedField

type plannedField struct {
	index    int
	name     string
	selector *tree.Selector
	attr     string
	as       string // url, html, number or ""
	required bool
	inner    plan // fields of a struct; nil for a value
}

var plans sync.Map // reflect.Type to plan or error

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

// makePlan reads a struct's tags. within lists the enclosing types.
func makePlan(t reflect.Type, within []reflect.Type) (plan, error) {
	if t.Kind() != reflect.Struct || t == timeType {
		return nil, fmt.Errorf("%s is not a struct with tags", t)
	}
	for _, outer := range within {
		if outer == t {
			return nil, fmt.Errorf("%s contains itself", t)
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
			err = errors.New("a struct is read from an element: remove @, url, html and number")
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
			break words // the comma is part of the selector
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

// innerPlan returns the plan for the structs of a field; nil if the field holds values.
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
	return nil, fmt.Errorf("cannot read a %s: want text, number, bool, time.Time, struct with tags, or slice of "+
		"them", t)
}

// A fieldReader fills a struct from a page.
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

// value reads one value, and reports whether the page has one.
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

// text returns the text, attribute or HTML of an element for a field, and whether it exists.
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
			return fmt.Errorf("not a number: %w", err)
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

// dateOf parses a date like value.Date, as UTC if it has no time zone.
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
