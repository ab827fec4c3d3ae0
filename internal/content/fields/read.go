package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	quote "kumo/internal/base/field"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fields/tree"
	"kumo/internal/content/fields/value"
)

// A Page is the input of rules.
type Page struct {
	URL  string
	Text string // in UTF-8
	XML  bool   // XML, not HTML
	Any  bool   // apply all rules, whatever the URL
}

// A Result holds the records of a page.
type Result struct {
	Records []page.Fields
	Rules   []RuleResult // results of the rules that match the page, in the order of the file
	Cut     bool         // data beyond a limit was dropped
}

// A RuleResult is the result of one rule.
type RuleResult struct {
	Rule    string
	Records int
	Lacking int // records that were dropped because a required field was missing
	// all fields, nested ones after the field that contains them
	Fields []FieldResult
}

// A FieldResult describes how often a field was found.
type FieldResult struct {
	Path     string // such as reviews.author
	Found    int    // in so many records or objects
	Missed   int
	Required bool
	Value    json.RawMessage // the first value; only with explain
	Source   string          // source of the first value; only with explain
	Why      string          // reason of the first miss; only with explain
}

// A Reader applies rules to pages, one after the other.
type Reader struct {
	rules  *Rules
	parser *tree.Parser
	run    run
}

// maxKept is the length of a page, in bytes, up to which its buffers are kept for the next one.
const maxKept = 256 << 10

// NewReader returns a reader of pages by the rules.
func (rs *Rules) NewReader() *Reader { return &Reader{rules: rs, parser: tree.New(0)} }

// Read extracts the records of a page. explain adds sources of values and reasons of misses to the result. For a page
// that no rule matches, it only compares the URL.
func (r *Reader) Read(p Page, explain bool) (res Result) {
	parsed := false
	for _, rule := range r.rules.rules {
		if !p.Any && !rule.matches(p.URL) {
			continue
		}
		if !parsed {
			parsed = true
			r.run = run{tree: r.parser.Parse(p.Text, p.XML), page: p.URL, explain: explain, out: r.run.out[:0]}
		}
		res.Rules = append(res.Rules, r.run.rule(rule, &res))
	}
	if parsed {
		res.Cut = r.run.cut || r.run.tree.Cut || !r.run.tree.Spend(0)
		r.run = run{out: r.run.out}
		if len(p.Text) > maxKept {
			r.parser = tree.New(0)
		}
	}
	return res
}

// A run processes one page.
type run struct {
	tree    *tree.Tree
	page    string
	base    *weburl.URL // nil: not yet computed
	explain bool
	cut     bool
	results []FieldResult // of the current rule, by field number
	written int           // bytes of all records
	out     []byte

	jsonLD *data
	meta   []int
	items  []int
	ids    map[string]int
}

func (r *run) rule(rule *rule, res *Result) RuleResult {
	r.results = make([]FieldResult, len(rule.all))
	for i, f := range rule.all {
		r.results[i] = FieldResult{Path: f.path, Required: f.required}
	}
	made := RuleResult{Rule: rule.name, Fields: r.results}
	scopes := []int{0}
	if rule.each != nil {
		scopes = r.elements(rule.each, 0, maxValues+1)
		if len(scopes) > maxValues {
			scopes, r.cut = scopes[:maxValues], true
		}
	}
	for _, scope := range scopes {
		if r.written > maxRecords {
			r.cut = true
			break
		}
		out, whole := r.object(r.out[:0], rule.fields, scope)
		r.out = out
		switch {
		case !whole:
			made.Lacking++
		case len(out) > len("{}"):
			made.Records++
			r.written += len(out)
			res.Records = append(res.Records, page.Fields{Rule: rule.name, Values: append([]byte(nil), out...)})
		}
	}
	if len(scopes) == 0 {
		for _, f := range rule.fields {
			r.addMissing(f, func() string { return rule.each.String() + ", the source of the records, matches nothing" })
		}
	}
	return made
}

// object appends an object of fields. It reports whether all required fields were found.
func (r *run) object(out []byte, fields []*field, scope int) (_ []byte, whole bool) {
	whole = true
	out = append(out, '{')
	for _, f := range fields {
		before := len(out)
		if out[before-1] != '{' {
			out = append(out, ',')
		}
		out = quote.JSON(out, f.name)
		out = append(out, ':')
		from := len(out)
		now, found := r.field(out, f, scope)
		if !found {
			whole = whole && !f.required
			if out = out[:before]; f.defaultValue != nil {
				if before > 0 && out[before-1] != '{' {
					out = append(out, ',')
				}
				out = append(quote.JSON(out, f.name), ':')
				out = append(out, f.defaultValue...)
			}
			continue
		}
		out = now
		is := &r.results[f.number]
		if is.Found++; r.explain && is.Value == nil {
			is.Value = append(json.RawMessage(nil), out[from:]...)
		}
	}
	return append(out, '}'), whole
}

func (r *run) addMissing(f *field, why func() string) {
	is := &r.results[f.number]
	if is.Missed++; r.explain && is.Why == "" {
		is.Why = why()
	}
}

// field appends a field's value, from the first source that has one.
func (r *run) field(out []byte, f *field, scope int) (_ []byte, found bool) {
	var whys []string
	for i := range f.sources {
		s := &f.sources[i]
		now, n, why := r.values(out, f, s, scope)
		if n > 0 {
			if is := &r.results[f.number]; r.explain && is.Source == "" {
				is.Source = s.String()
			}
			return now, true
		}
		if r.explain {
			if len(f.sources) > 1 {
				why = s.String() + ": " + why
			}
			whys = append(whys, why)
		}
	}
	r.addMissing(f, func() string { return strings.Join(whys, "; ") })
	return out, false
}

// A list holds the values of a field as JSON.
type list struct {
	out    []byte
	n      int
	max    int
	isList bool
	why    string
}

func (l *list) full() bool { return l.n >= l.max }

// values appends the values of a source, and returns their number.
func (r *run) values(out []byte, f *field, s *source, scope int) (_ []byte, n int, why string) {
	most := 1
	if f.list {
		most = maxValues
	}
	l := &list{out: out, max: most, isList: f.list}
	if l.isList {
		l.out = append(l.out, '[')
	}
	switch {
	case s.xpath != nil || s.css != nil:
		r.found(l, f, s, scope)
	case s.key == "jsonld":
		values, why := r.data().follow(&s.path, maxValues, r.explain)
		l.why = why
		for _, v := range values {
			if l.full() {
				break
			}
			r.json(l, f, s, v)
		}
	case s.key == "meta":
		contents := r.metas(s.meta, maxValues)
		for _, content := range contents {
			r.text(l, f, s, content)
		}
		if r.explain && len(contents) == 0 {
			l.why = "the page has no meta element with that name"
		}
	default:
		values, why := r.microdata(&s.path, maxValues)
		l.why = why
		for _, v := range values {
			r.text(l, f, s, v)
		}
	}
	if l.isList {
		l.out = append(l.out, ']')
	}
	return l.out, l.n, l.why
}

// found adds the values of a selector's matches.
func (r *run) found(l *list, f *field, s *source, scope int) {
	if s.css != nil {
		nodes := r.tree.Find(s.css, scope, maxValues)
		for _, i := range nodes {
			if l.full() {
				return
			}
			r.element(l, f, s, i)
		}
		r.count(l, s, len(nodes))
		return
	}
	nodes, text := s.xpath.find(r.tree, scope, maxValues)
	if text != "" {
		r.text(l, f, s, text)
		return
	}
	for _, n := range nodes {
		if l.full() {
			return
		}
		if n.attr >= 0 {
			r.text(l, f, s, r.tree.Node(n.at).Attr[n.attr].Val)
		} else {
			r.element(l, f, s, n.at)
		}
	}
	r.count(l, s, len(nodes))
}

// count sets the reason why no match of a selector had a value.
func (r *run) count(l *list, s *source, matched int) {
	switch {
	case !r.explain || l.n > 0:
	case matched == 0:
		l.why = s.key + " matches nothing: " + s.expr
	default:
		l.why = fmt.Sprintf("%s, %s", counted(matched), l.why)
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 match"
	}
	return fmt.Sprintf("%d matches", n)
}

func (r *run) element(l *list, f *field, s *source, i int) {
	switch {
	case f.kind == object:
		before := len(l.out)
		r.next(l)
		out, whole := r.object(l.out, f.fields, i)
		if !whole || len(out) == before+len("{}") {
			l.out = l.out[:before]
			r.explainMiss(l, "a required field is missing")
			return
		}
		l.out = out
		l.n++
		r.room(l, len(out)-before)
	case s.attr != "":
		v, has := r.tree.Attr(i, s.attr)
		if !has {
			r.explainMiss(l, "no attribute "+s.attr)
			return
		}
		r.text(l, f, s, v)
	case s.html:
		r.text(l, f, s, r.tree.HTML(i))
	case s.own:
		r.text(l, f, s, r.tree.OwnText(i))
	default:
		r.text(l, f, s, r.tree.Text(i))
	}
}

// elements returns the elements that match a selector.
func (r *run) elements(s *source, scope, most int) []int {
	if s.css != nil {
		return r.tree.Find(s.css, scope, most)
	}
	nodes, _ := s.xpath.find(r.tree, scope, most)
	var all []int
	for _, n := range nodes {
		if n.attr < 0 {
			all = append(all, n.at)
		}
	}
	return all
}

func (r *run) explainMiss(l *list, why string) {
	if r.explain && l.why == "" {
		l.why = why
	}
}

// next begins a value.
func (r *run) next(l *list) {
	if l.isList && l.n > 0 {
		l.out = append(l.out, ',')
	}
}

// room ends a list that has become too large.
func (r *run) room(l *list, size int) {
	if len(l.out) > maxRecords || size > maxRecords {
		r.cut = true
		l.max = l.n
	}
}

// json adds a value of JSON-LD.
func (r *run) json(l *list, f *field, s *source, v any) {
	if f.kind == asJSON {
		b, err := json.Marshal(v)
		if err != nil || len(b) > tree.MaxText {
			r.explainMiss(l, fmt.Sprintf("%d bytes of JSON exceed the limit of %d", len(b), tree.MaxText))
			return
		}
		r.next(l)
		l.out = append(l.out, b...)
		l.n++
		return
	}
	text, is := textOf(v, f.kind)
	if !is {
		r.explainMiss(l, "the value is an object: name a part of it, or use type: json")
		return
	}
	r.text(l, f, s, text)
}

// text adds a text of the page, converted to the field's type.
func (r *run) text(l *list, f *field, s *source, text string) {
	if l.full() {
		return
	}
	if s.regex != nil {
		m := s.regex.FindStringSubmatchIndex(text)
		switch {
		case m == nil:
			if r.explain {
				r.explainMiss(l, fmt.Sprintf("the regex does not match %s", quoteText(text)))
			}
			return
		case len(m) > 2 && m[2] >= 0:
			text = text[m[2]:m[3]]
		default:
			text = text[m[0]:m[1]]
		}
	}
	if !s.html {
		text = tree.Collapse(text)
	}
	if text == "" {
		r.explainMiss(l, "the text is empty")
		return
	}
	before := len(l.out)
	r.next(l)
	out, err := f.encode(l.out, text, r)
	if err != nil {
		l.out = l.out[:before]
		if r.explain {
			r.explainMiss(l, fmt.Sprintf("not a %s: %s (%v)", nameOf(f.kind), quoteText(text), err))
		}
		return
	}
	l.out = out
	l.n++
	r.room(l, 0)
}

// quoteText returns the beginning of a text in quotes.
func quoteText(text string) string {
	const most = 60
	text = tree.Collapse(text)
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

func nameOf(k kind) string {
	for name, is := range kinds {
		if is == k {
			return name
		}
	}
	return "value"
}

// encode appends a text as JSON of the field's type. r provides the page's base URL; nil: no page.
func (f *field) encode(out []byte, text string, r *run) ([]byte, error) {
	switch f.kind {
	case number:
		n, err := value.Number(text, f.decimal)
		return append(out, n...), err
	case boolean:
		b, err := value.Bool(text)
		if err != nil {
			return out, err
		}
		if b {
			return append(out, "true"...), nil
		}
		return append(out, "false"...), nil
	case date:
		read := value.Date
		if f.layout != nil {
			read = f.layout.Read
		}
		d, err := read(text)
		if err != nil {
			return out, err
		}
		return quote.JSON(out, d), nil
	case url:
		u, err := r.resolve(text)
		if err != nil {
			return out, err
		}
		return quote.JSON(out, u), nil
	}
	return quote.JSON(out, text), nil
}

// resolve returns a URL resolved against the page's base.
func (r *run) resolve(text string) (string, error) {
	if r == nil {
		u, err := weburl.Parse(text)
		return u.String(), err
	}
	if r.base == nil {
		base, err := weburl.Parse(r.page)
		if err != nil {
			return "", errors.New("the page has no URL to resolve it against")
		}
		if href := r.tree.Base(); href != "" {
			if b, err := base.Resolve(href); err == nil {
				base = b
			}
		}
		r.base = &base
	}
	u, err := r.base.Resolve(text)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}
