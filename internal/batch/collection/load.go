package collection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/encoding/htmlindex"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
	"kumo/internal/base/weburl"
	"kumo/internal/base/yaml"
	"kumo/internal/content/lang"
)

// An Error is a problem in a collection's file.
type Error struct {
	File    string
	Line    int    // from 1; 0 if the problem concerns the whole file
	Key     string // "language.share"; "" if it concerns no key
	Problem string // the error, and the expected value
}

func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	if e.Key != "" {
		at += ": " + e.Key
	}
	return at + ": " + e.Problem
}

// LoadAll loads collections from files and from all *.yaml and *.yml files of folders, sorted by code. Codes and
// directories must be unique. Its error is a usage error that joins the problems of all files, each an [Error].
func LoadAll(names ...string) ([]*Collection, error) {
	var all []*Collection
	var faults error
	files, err := yamlFiles(names)
	if err != nil {
		return nil, advice.Usage("%w", err)
	}
	of := map[string]string{} // unique value → file
	for _, name := range files {
		c, err := Load(name)
		if err != nil {
			faults = errors.Join(faults, err)
			continue
		}
		for _, f := range []struct{ key, value string }{{"code", c.Code}, {"directory", c.Directory}} {
			if other, twice := of[f.key+" "+f.value]; twice {
				faults = errors.Join(faults, &Error{name, 0, f.key, fmt.Sprintf("%q is already used by %s", f.value,
					other)})
			}
			of[f.key+" "+f.value] = name
		}
		all = append(all, c)
	}
	if faults != nil {
		return nil, advice.Usage("%w", faults)
	}
	slices.SortFunc(all, func(a, b *Collection) int { return strings.Compare(a.Code, b.Code) })
	return all, nil
}

func yamlFiles(names []string) (files []string, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: give a collection's YAML file, or a folder of them", err)
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		var here []string
		for _, pattern := range []string{"*.yaml", "*.yml"} {
			some, err := filepath.Glob(filepath.Join(name, pattern))
			if err != nil {
				return nil, err
			}
			here = append(here, some...)
		}
		if len(here) == 0 {
			return nil, fmt.Errorf("%s has no *.yaml files", name)
		}
		slices.Sort(here)
		files = append(files, here...)
	}
	return files, nil
}

// Load loads a collection from its file. Its error is a usage error that joins all problems, each an [Error].
func Load(name string) (*Collection, error) {
	data, err := yaml.ReadFile(name)
	if err != nil {
		return nil, advice.Usage("%w", err)
	}
	return Parse(name, data)
}

// Parse is like Load for the content of a file with a name.
func Parse(name string, data []byte) (*Collection, error) {
	l := &loader{file: name, c: New(), lines: map[string]int{}}
	l.load(data)
	if len(l.faults) > 0 {
		return nil, advice.Usage("%w", errors.Join(l.faults...))
	}
	return l.c, nil
}

type loader struct {
	file   string
	c      *Collection
	lines  map[string]int // line of each key in the file
	faults []error
}

func (l *loader) fault(key, format string, args ...any) {
	l.faults = append(l.faults, &Error{l.file, l.lines[key], key, fmt.Sprintf(format, args...)})
}

func (l *loader) load(data []byte) {
	bodies, err := yaml.Parse(data)
	if err != nil {
		what, line := yaml.Position(err)
		l.faults = append(l.faults, &Error{l.file, line, "", "not YAML: " + what})
		return
	}
	if len(bodies) > 1 {
		l.faults = append(l.faults, &Error{l.file, yaml.Line(bodies[1]), "",
			"second document: a file must contain one collection"})
		return
	}
	var body yaml.Node
	if len(bodies) == 1 {
		body = bodies[0]
	}
	c := l.c
	read := l.mapping(body, "", map[string]any{"code": &c.Code, "name": &c.Name, "directory": &c.Directory,
		"seeds": &c.Seeds, "scope": &c.Scope, "include": &c.Include, "exclude": &c.Exclude, "depth": &c.Depth,
		"threads": &c.Threads, "interval": &c.Interval, "redirects": &c.Redirects, "charsets": &c.Charsets,
		"language": func(n yaml.Node) {
			l.mapping(n, "language.", map[string]any{"code": &c.Language.Code, "share": &c.Language.Share,
				"confidence": &c.Language.Confidence})
		},
		"recrawl": &c.Recrawl, "fields": &c.Fields, "schedule": &c.Schedule})
	if read {
		l.check()
	}
}

// mapping reads the values of a mapping into variables, or passes their nodes to functions.
func (l *loader) mapping(n yaml.Node, prefix string, into map[string]any) bool {
	var pairs []*yaml.MappingValueNode
	switch n := n.(type) {
	case *yaml.MappingNode:
		pairs = n.Values
	case *yaml.MappingValueNode:
		pairs = []*yaml.MappingValueNode{n}
	case nil:
		l.faults = append(l.faults, &Error{l.file, 0, "", "the file is empty: a collection needs code and seeds"})
		return false
	default:
		l.faults = append(l.faults, &Error{l.file, yaml.Line(n), strings.TrimSuffix(prefix, "."),
			"expected keys with values, as in \"" + sorted(into)[0] + ": …\""})
		return false
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		key := prefix + name
		if first, twice := l.lines[key]; twice {
			l.faults = append(l.faults, &Error{l.file, yaml.Line(pair.Key), key,
				fmt.Sprintf("already set in line %d", first)})
			continue
		}
		l.lines[key] = yaml.Line(pair.Key)
		l.value(key, name, pair.Value, into)
	}
	return true
}

func (l *loader) value(key, name string, n yaml.Node, into map[string]any) {
	switch v := into[name].(type) {
	case nil:
		l.fault(key, "unknown key; known keys: %s", strings.Join(sorted(into), ", "))
	case func(yaml.Node):
		v(n)
	case *Duration:
		l.duration(key, n, v)
	case *[]string:
		l.list(key, n, v)
	default:
		if err := yaml.Decode(n, v); err != nil || yaml.IsNull(n) {
			want := map[bool]string{true: "a number"}[isNumber(v)]
			if want == "" {
				want = "a text"
			}
			l.fault(key, "expected %s, got %s", want, describeNode(n))
		}
	}
}

func isNumber(v any) bool {
	switch v.(type) {
	case *int, *float64:
		return true
	}
	return false
}

func describeNode(n yaml.Node) string {
	text := strings.TrimSpace(n.String())
	if line, _, more := strings.Cut(text, "\n"); more || len(line) > 60 {
		text = line[:min(len(line), 60)] + " …"
	}
	if text == "" {
		return "nothing"
	}
	return text
}

func isMapping(n yaml.Node) bool {
	_, is := n.(*yaml.MappingNode)
	return is
}

// list reads a list of texts. A single text counts as a list.
func (l *loader) list(key string, n yaml.Node, into *[]string) {
	seq, ok := n.(*yaml.SequenceNode)
	if !ok {
		var one string
		if err := yaml.Decode(n, &one); err != nil || yaml.IsNull(n) || isMapping(n) {
			l.fault(key, "expected a list of texts, one per line beginning with \"- \"")
			return
		}
		*into = []string{one}
		return
	}
	*into = nil
	for i, entry := range seq.Values {
		at := fmt.Sprintf("%s[%d]", key, i)
		l.lines[at] = yaml.Line(entry)
		var one string
		if err := yaml.Decode(entry, &one); err != nil || yaml.IsNull(entry) {
			l.fault(at, "expected a text, got %s", describeNode(entry))
		}
		*into = append(*into, one)
	}
}

func (l *loader) duration(key string, n yaml.Node, into *Duration) {
	var text string
	err := yaml.Decode(n, &text)
	d, perr := time.ParseDuration(text)
	if err != nil || perr != nil {
		l.fault(key, "expected a duration with unit, as in 500ms, 1s or 2m, got %s", describeNode(n))
		return
	}
	*into = Duration(d)
}

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

var codes = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

const maxThreads = 1000

// check checks the values and sets those that depend on others.
func (l *loader) check() {
	c := l.c
	if !codes.MatchString(c.Code) {
		l.fault("code", "%q: expected up to 32 lower case letters, digits and hyphens, as in zh", c.Code)
		return
	}
	if c.Directory == "" {
		c.Directory = "crawler_" + c.Code
	}
	if place.ValidName(c.Directory) != nil || strings.ContainsAny(c.Directory, "/:") {
		l.fault("directory", "%q: expected a folder name without slashes and without a leading dot", c.Directory)
	}
	l.language()
	l.seeds()
	if _, err := weburl.ParseMode(c.Scope); err != nil {
		l.fault("scope", "%q: expected page, prefix, host, domain or any", c.Scope)
	}
	for key, list := range map[string][]string{"include": c.Include, "exclude": c.Exclude} {
		for i, text := range list {
			if _, err := regexp.Compile(text); err != nil {
				l.entryFault(key, i, "%q is not a valid regular expression: %v", text, err)
			}
		}
	}
	l.numbers()
	for i, name := range c.Charsets {
		if e, err := htmlindex.Get(name); err != nil {
			l.entryFault("charsets", i, "%q: expected a charset name of the WHATWG Encoding Standard, as in gbk", name)
		} else if c.Charsets[i], err = htmlindex.Name(e); err != nil {
			l.entryFault("charsets", i, "%q: %v", name, err)
		}
	}
	if c.Fields != "" {
		if !filepath.IsAbs(c.Fields) {
			c.Fields = filepath.Join(filepath.Dir(l.file), c.Fields)
		}
		if err := c.ReadFieldRules(); err != nil {
			l.fault("fields", "%v: expected a file of rules, as read by kumo check fields", err)
		}
	}
	if c.Schedule != "" {
		if _, err := ParseSchedule(c.Schedule); err != nil {
			l.fault("schedule", "%v", err)
		}
	}
	one := *c
	for i, text := range c.Recrawl {
		one.Recrawl = []string{text}
		if _, err := one.Intervals(); err != nil {
			l.entryFault("recrawl", i, "%v", err)
		}
	}
}

// language checks the language and sets its default, the collection's code.
func (l *loader) language() {
	c := &l.c.Language
	said := c.Code != ""
	if !said {
		c.Code = l.c.Code
	}
	if now := lang.Current(c.Code); c.Code != AnyLanguage && !slices.Contains(lang.Known(), now) {
		told := fmt.Sprintf("expected one of %s, or %s to accept pages in any language", strings.Join(lang.Known(),
			", "),
			AnyLanguage)
		if said {
			l.fault("language.code", "%q is not a language that can be detected: %s", c.Code, told)
		} else {
			l.fault("code", "%q is not a language that can be detected, so set one (language: {code: …}): %s", c.Code,
				told)
		}
	} else {
		c.Code = now
	}
}

// entryFault adds a problem of a list entry, with the entry's own line if it has one.
func (l *loader) entryFault(key string, i int, format string, args ...any) {
	at := fmt.Sprintf("%s[%d]", key, i)
	if l.lines[at] == 0 {
		at = key
	}
	l.fault(at, format, args...)
}

func (l *loader) seeds() {
	c := l.c
	if len(c.Seeds) == 0 {
		l.fault("seeds", "no seeds: expected at least one URL, as in \"seeds: [https://example.com/]\"")
	}
	seen := map[string]int{}
	for i, text := range c.Seeds {
		u, err := weburl.Parse(strings.TrimSpace(text))
		if err != nil || !u.IsHTTP() {
			l.entryFault("seeds", i, "%q: expected a URL that begins with http:// or https://", text)
			continue
		}
		c.Seeds[i] = u.Canonical().String()
		if first, twice := seen[c.Seeds[i]]; twice {
			l.entryFault("seeds", i, "%q is a duplicate of entry %d", text, first+1)
		}
		seen[c.Seeds[i]] = i
	}
}

func (l *loader) numbers() {
	c := l.c
	for _, f := range []struct {
		key         string
		n           int
		least, most int
	}{{"depth", c.Depth, 0, 1000}, {"threads", c.Threads, 1, maxThreads}, {"redirects", c.Redirects, 0, 50}} {
		if f.n < f.least || f.n > f.most {
			l.fault(f.key, "%d: expected a number from %d to %d", f.n, f.least, f.most)
		}
	}
	if c.Interval < 0 || c.Interval > Duration(time.Hour) {
		l.fault("interval", "%v: expected a duration from 0s to 1h", time.Duration(c.Interval))
	}
	for key, share := range map[string]float64{"language.share": c.Language.Share,
		"language.confidence": c.Language.Confidence} {
		if !(share >= 0 && share <= 1) {
			l.fault(key, "%v: expected a number from 0 to 1", share)
		}
	}
}

// maxFieldRules is the maximum size of a file of rules, in bytes.
const maxFieldRules = 1 << 20

// ReadFieldRules reads the file of rules that Fields names into FieldRules.
func (c *Collection) ReadFieldRules() error {
	f, err := os.Open(c.Fields)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if c.FieldRules, err = io.ReadAll(io.LimitReader(f, maxFieldRules+1)); err != nil {
		return err
	}
	switch {
	case len(c.FieldRules) > maxFieldRules:
		return fmt.Errorf("%s has more than %d bytes", c.Fields, maxFieldRules)
	case len(bytes.TrimSpace(c.FieldRules)) == 0:
		return fmt.Errorf("%s is empty", c.Fields)
	}
	return nil
}
