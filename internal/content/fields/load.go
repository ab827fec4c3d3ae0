package fields

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/yaml"
	"kumo/internal/content/fields/tree"
	"kumo/internal/content/fields/value"
)

// An Error is a fault in a file of rules.
type Error struct {
	File string
	Line int    // from 1; 0: the whole file
	Key  string // "product.price.type"; "": no key
	What string // the problem, and the expected form
}

func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	if e.Key != "" {
		at += ": " + e.Key
	}
	return at + ": " + e.What
}

// Load reads a file of rules, and returns its content, in whole lines. Instead of a file's name, it accepts such
// content, which a crawl of several nodes has in its settings. The error is a usage error with all faults, each an
// [Error].
func Load(name string) (*Rules, string, error) {
	if strings.Contains(name, "\n") {
		rules, err := Parse("the crawl's field rules", []byte(name))
		return rules, name, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, "", advice.Usage("%w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, "", advice.Usage("%w", err)
	}
	rules, err := Parse(name, data)
	return rules, strings.TrimRight(string(data), "\n") + "\n", err
}

// Parse parses the content of a file of rules; name is the file's name.
func Parse(name string, data []byte) (*Rules, error) {
	l := &loader{file: name}
	rules := l.load(data)
	if len(l.faults) > 0 {
		slices.SortStableFunc(l.faults, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
		var all error
		for _, f := range l.faults {
			all = errors.Join(all, f)
		}
		return nil, advice.Usage("%w", all)
	}
	return rules, nil
}

type loader struct {
	file   string
	faults []*Error
}

func (l *loader) fault(n yaml.Node, key, format string, args ...any) {
	const most = 50
	if len(l.faults) < most {
		l.faults = append(l.faults, &Error{l.file, yaml.Line(n), key, fmt.Sprintf(format, args...)})
	}
}

const ruleExample = "want a list of rules: \"- name: …\", \"  url: …\", \"  fields: …\""

func (l *loader) load(data []byte) *Rules {
	if len(data) > maxFile {
		l.fault(nil, "", "the file exceeds %d bytes", maxFile)
		return nil
	}
	bodies, err := yaml.Parse(data)
	if err != nil {
		what, line := yaml.Position(err)
		l.faults = append(l.faults, &Error{l.file, line, "", "not YAML: " + what})
		return nil
	}
	if len(bodies) != 1 {
		l.fault(nil, "", "%s", ruleExample)
		return nil
	}
	list, is := bodies[0].(*yaml.SequenceNode)
	if !is || len(list.Values) == 0 || len(list.Values) > maxRules {
		l.fault(bodies[0], "", "%s; up to %d", ruleExample, maxRules)
		return nil
	}
	rs := &Rules{}
	names := map[string]int{}
	for _, n := range list.Values {
		r := l.rule(n)
		if first, twice := names[r.name]; twice && r.name != "" {
			l.fault(n, r.name, "the rule in line %d has the same name", first)
		}
		names[r.name] = yaml.Line(n)
		r.info = page.FieldRule{Name: r.name, Each: r.each != nil}
		for _, f := range r.fields {
			r.info.Fields = append(r.info.Fields, f.name)
		}
		rs.rules = append(rs.rules, r)
	}
	return rs
}

var namePattern = regexp.MustCompile(`^[\pL_][\pL\pN_.-]*$`)

// isName reports whether a rule may have the name. It checks the length separately: a limit in the pattern would add 2
// ms and 4 MB to each start of kumo.
func isName(s string) bool { return utf8.RuneCountInString(s) <= 100 && namePattern.MatchString(s) }

func (l *loader) rule(n yaml.Node) *rule {
	r := &rule{}
	keys := l.mapping(n, "", "name", "url", "each", "fields")
	if keys == nil {
		return r
	}
	if r.name = l.text(keys["name"], "name"); !isName(r.name) {
		l.fault(cmp.Or(keys["name"], n), "name", "%q: want a name of letters, digits, _, - and .", r.name)
	}
	for i, pattern := range l.texts(keys["url"], r.name+".url") {
		re, err := regexp.Compile(pattern)
		if err != nil {
			l.fault(keys["url"], fmt.Sprintf("%s.url[%d]", r.name, i), "%q is not a regular expression: %v", pattern, err)
			continue
		}
		r.urls = append(r.urls, re)
	}
	if keys["url"] == nil {
		l.fault(n, r.name+".url", "missing; add a regular expression for the URLs of the rule's pages")
	}
	if each := keys["each"]; each != nil {
		r.each = l.eachSource(each, r.name+".each")
	}
	if keys["fields"] == nil {
		l.fault(n, r.name+".fields", "missing; add names, each with a source, as in \"title: h1\"")
		return r
	}
	r.fields = l.fields(keys["fields"], r, "", 0)
	return r
}

// eachSource reads a selector of elements: CSS, or {css: …}, or {xpath: …}.
func (l *loader) eachSource(n yaml.Node, key string) *source {
	s := &source{}
	if isText(n) {
		s.key, s.expr = "css", l.text(n, key)
		l.compile(s, n, key)
	} else if keys := l.mapping(n, key+".", "css", "xpath"); keys != nil {
		l.source(s, keys, n, key)
	}
	if s.css != nil && s.css.Take != (tree.Take{}) {
		l.fault(n, key, "want a selector of elements, without ::%s", "attr or ::text")
	}
	return s
}

func (l *loader) fields(n yaml.Node, r *rule, prefix string, depth int) (all []*field) {
	at := r.name + "." + prefix
	pairs := l.pairs(n, at+"fields")
	if pairs == nil {
		return nil
	}
	if len(pairs) > maxFields || depth > maxNested {
		l.fault(n, at+"fields", "at most %d fields are allowed, and objects nested %d deep", maxFields, maxNested)
		return nil
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		key := at + name
		switch {
		case seen[name]:
			l.fault(pair.Key, key, "the field is repeated")
			continue
		case !isName(name) || strings.Contains(name, "."):
			l.fault(pair.Key, key, "%q: want a name of letters, digits, _ and -", name)
			continue
		}
		seen[name] = true
		f := &field{name: name, path: prefix + name, number: len(r.all)}
		r.all = append(r.all, f)
		l.field(f, pair.Value, r, key, depth)
		all = append(all, f)
	}
	if len(all) == 0 {
		l.fault(n, at+"fields", "no fields given")
	}
	return all
}

var (
	sourceKeys = []string{"css", "xpath", "jsonld", "meta", "microdata"}
	takeKeys   = []string{"attr", "html", "regex"}
	fieldKeys  = slices.Concat(sourceKeys, takeKeys, []string{"any", "type", "list", "required", "default", "decimal",
		"format", "fields"})
	atAttr = regexp.MustCompile(`^(.*[^\s@])@([\pL_:][\pL\pN_:.-]*)$`)
)

// field reads a field: a CSS selector, optionally with @ and an attribute, or a mapping.
func (l *loader) field(f *field, n yaml.Node, r *rule, key string, depth int) {
	if isText(n) {
		s := source{key: "css", expr: l.text(n, key)}
		if m := atAttr.FindStringSubmatch(s.expr); m != nil {
			s.expr, s.attr = m[1], strings.ToLower(m[2])
		}
		l.compile(&s, n, key)
		f.sources = []source{s}
		return
	}
	keys := l.mapping(n, key+".", fieldKeys...)
	if keys == nil {
		return
	}
	l.sources(f, keys, n, key)
	l.kind(f, keys, key)
	f.list, f.required = l.isTrue(keys["list"], key+".list"), l.isTrue(keys["required"], key+".required")
	if inner := keys["fields"]; inner != nil {
		f.kind = object
		for i := range f.sources {
			if s := &f.sources[i]; s.css == nil && s.xpath == nil && s.key != "" || s.attr != "" || s.html || s.own ||
				s.regex != nil {
				l.fault(n, key, "the source of an object must be css or xpath alone, without attr, html and regex")
			}
		}
		if keys["type"] != nil {
			l.fault(keys["type"], key+".type", "not allowed with fields, which make an object")
		}
		f.fields = l.fields(inner, r, f.path+".", depth+1)
	}
	l.readDefault(f, keys["default"], key+".default")
	if depth > 0 {
		for i := range f.sources {
			if s := &f.sources[i]; s.key == "jsonld" || s.key == "meta" || s.key == "microdata" {
				l.fault(n, key, "%s applies to the whole page, not to an element: use css or xpath here", s.key)
			}
		}
	}
}

// sources reads the sources of a field: the keys of one source, or any with a list of sources.
func (l *loader) sources(f *field, keys map[string]yaml.Node, n yaml.Node, key string) {
	some := keys["any"]
	if some == nil {
		s := source{}
		l.source(&s, keys, n, key)
		f.sources = []source{s}
		return
	}
	for _, k := range slices.Concat(sourceKeys, takeKeys) {
		if keys[k] != nil {
			l.fault(keys[k], key+"."+k, "not allowed beside any: move it into the list")
		}
	}
	list, is := some.(*yaml.SequenceNode)
	if !is || len(list.Values) == 0 {
		l.fault(some, key+".any", "want a list of sources; the first one with a value applies")
		return
	}
	for i, one := range list.Values {
		at := fmt.Sprintf("%s.any[%d]", key, i)
		if isText(one) {
			inner := &field{}
			l.field(inner, one, nil, at, 0)
			f.sources = append(f.sources, inner.sources...)
			continue
		}
		if inner := l.mapping(one, at+".", slices.Concat(sourceKeys, takeKeys)...); inner != nil {
			s := source{}
			l.source(&s, inner, one, at)
			f.sources = append(f.sources, s)
		}
	}
}

func (l *loader) source(s *source, keys map[string]yaml.Node, n yaml.Node, key string) {
	for _, k := range sourceKeys {
		if keys[k] == nil {
			continue
		}
		if s.key != "" {
			l.fault(keys[k], key, "%s and %s: want one source; to use the first one with a value, write "+
				"any: [{%s: …}, {%s: …}]", s.key, k, s.key, k)
			return
		}
		s.key, s.expr = k, l.text(keys[k], key+"."+k)
	}
	if s.key == "" {
		l.fault(n, key, "no source; use one of %s, or any", strings.Join(sourceKeys, ", "))
		return
	}
	if keys["attr"] != nil {
		s.attr = l.text(keys["attr"], key+".attr")
		if s.key != "css" && s.key != "xpath" {
			l.fault(keys["attr"], key+".attr", "only allowed with css and xpath")
		}
	}
	s.html = l.isTrue(keys["html"], key+".html")
	if s.html && (s.attr != "" || s.key != "css" && s.key != "xpath") {
		l.fault(keys["html"], key+".html", "only allowed with css and xpath, and without attr")
	}
	if keys["regex"] != nil {
		re, err := regexp.Compile(l.text(keys["regex"], key+".regex"))
		if err != nil {
			l.fault(keys["regex"], key+".regex", "not a regular expression: %v", err)
		}
		s.regex = re
	}
	l.compile(s, keys[s.key], key+"."+s.key)
}

// compile parses the selector or path of a source.
func (l *loader) compile(s *source, n yaml.Node, key string) {
	var err error
	switch s.key {
	case "css":
		if s.css, err = tree.Compile(s.expr); err == nil && s.css.Take != (tree.Take{}) {
			if s.attr != "" || s.html {
				l.fault(n, key, "::attr and ::text cannot be combined with attr and html")
			}
			s.attr, s.own = s.css.Take.Attr, s.css.Take.Own
		}
	case "xpath":
		s.xpath, err = compileXPath(s.expr)
	case "jsonld", "microdata":
		if s.path, err = parsePath(s.expr); err == nil && s.key == "microdata" && len(s.path.names) == 0 {
			err = errors.New("want a type and a property, as in Product.name")
		}
	case "meta":
		if s.meta = strings.ToLower(strings.TrimSpace(s.expr)); s.meta == "" {
			err = errors.New("want a name, such as og:title or description")
		}
	}
	if err != nil {
		l.fault(n, key, "%v", err)
	}
}

func (l *loader) kind(f *field, keys map[string]yaml.Node, key string) {
	if keys["type"] != nil {
		name := l.text(keys["type"], key+".type")
		k, is := kinds[name]
		if !is {
			l.fault(keys["type"], key+".type", "%q: one of text, number, date, url, bool, json is required; use list: true "+
				"for a list, fields for an object", name)
		}
		f.kind = k
	}
	if f.kind == asJSON && slices.ContainsFunc(f.sources, func(s source) bool { return s.key != "jsonld" }) {
		l.fault(keys["type"], key+".type", "json is only allowed with jsonld")
	}
	if keys["decimal"] != nil {
		f.decimal = l.text(keys["decimal"], key+".decimal")
		if f.kind != number || f.decimal != "." && f.decimal != "," {
			l.fault(keys["decimal"], key+".decimal", "want \".\" or \",\", with type: number")
		}
	}
	if keys["format"] != nil {
		layout, err := value.ParseLayout(l.text(keys["format"], key+".format"))
		if err == nil && f.kind != date {
			err = errors.New("only allowed with type: date")
		}
		if err != nil {
			l.fault(keys["format"], key+".format", "%v", err)
		}
		f.layout = layout
	}
}

// readDefault reads the value of a field that is not found.
func (l *loader) readDefault(f *field, n yaml.Node, key string) {
	if n == nil {
		return
	}
	if f.list || f.kind == object || f.kind == asJSON || f.required {
		l.fault(n, key, "not allowed for lists, objects, json and required fields")
		return
	}
	var err error
	if f.defaultValue, err = f.encode(nil, l.text(n, key), nil); err != nil {
		l.fault(n, key, "%v", err)
	}
}

func isText(n yaml.Node) bool {
	switch n.(type) {
	case *yaml.StringNode, *yaml.LiteralNode, *yaml.IntegerNode, *yaml.FloatNode, *yaml.BoolNode:
		return true
	}
	return false
}

// mapping reads a mapping with known keys. It returns nil, and adds a fault, if n is not a mapping.
func (l *loader) mapping(n yaml.Node, prefix string, known ...string) map[string]yaml.Node {
	pairs := l.pairs(n, strings.TrimSuffix(prefix, "."))
	if pairs == nil {
		return nil
	}
	keys := map[string]yaml.Node{}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		switch {
		case keys[name] != nil:
			l.fault(pair.Key, prefix+name, "the key is repeated")
		case !slices.Contains(known, name):
			l.fault(pair.Key, prefix+name, "unknown key; keys: %s", strings.Join(known, ", "))
		default:
			keys[name] = pair.Value
		}
	}
	return keys
}

func (l *loader) pairs(n yaml.Node, key string) []*yaml.MappingValueNode {
	switch n := n.(type) {
	case *yaml.MappingNode:
		if len(n.Values) > 0 {
			return n.Values
		}
	case *yaml.MappingValueNode:
		return []*yaml.MappingValueNode{n}
	}
	l.fault(n, key, "want a mapping, as in \"title: h1\"")
	return nil
}

// text reads a text; "" for nil.
func (l *loader) text(n yaml.Node, key string) (s string) {
	if n == nil {
		return ""
	}
	if !isText(n) || yaml.Decode(n, &s) != nil {
		l.fault(n, key, "want text")
	}
	return s
}

// texts reads a list of texts; a single text becomes a list of one.
func (l *loader) texts(n yaml.Node, key string) (all []string) {
	list, is := n.(*yaml.SequenceNode)
	switch {
	case n == nil:
		return nil
	case !is:
		return []string{l.text(n, key)}
	}
	for i, one := range list.Values {
		all = append(all, l.text(one, fmt.Sprintf("%s[%d]", key, i)))
	}
	return all
}

func (l *loader) isTrue(n yaml.Node, key string) (is bool) {
	if n != nil {
		if _, isBool := n.(*yaml.BoolNode); !isBool || yaml.Decode(n, &is) != nil {
			l.fault(n, key, "want true or false")
		}
	}
	return is
}
