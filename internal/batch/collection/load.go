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

// An Error is a fault in a collection's file.
type Error struct {
	File    string
	Line    int    // from 1; 0 if it is of the file as a whole
	Key     string // "language.share"; "" if it is of none
	Problem string // what is wrong, and what would be right
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

// LoadAll loads the collections of files, and of all *.yaml and *.yml files of folders, sorted by code. Nothing may be
// there twice. Its error is of usage, and names all faults of all files, each an [Error].
func LoadAll(names ...string) ([]*Collection, error) {
	var all []*Collection
	var faults error
	files, err := yamlFiles(names)
	if err != nil {
		return nil, advice.Usage("%w", err)
	}
	of := map[string]string{} // what may be there once → file
	for _, name := range files {
		c, err := Load(name)
		if err != nil {
			faults = errors.Join(faults, err)
			continue
		}
		for _, f := range []struct{ key, value string }{{"code", c.Code}, {"directory", c.Directory}} {
			if other, twice := of[f.key+" "+f.value]; twice {
				faults = errors.Join(faults, &Error{name, 0, f.key, fmt.Sprintf("%q is that of %s, too", f.value, other)})
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
			return nil, fmt.Errorf("%w: name a collection's YAML file, or a folder of them", err)
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

// Load loads a collection from its file. Its error is of usage, and names all faults, each an [Error].
func Load(name string) (*Collection, error) {
	data, err := yaml.ReadFile(name)
	if err != nil {
		return nil, advice.Usage("%w", err)
	}
	return Parse(name, data)
}

// Parse is Load of what a file called name holds.
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
	lines  map[string]int // of keys that are there
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
		l.faults = append(l.faults, &Error{l.file, yaml.Line(bodies[1]), "", "a second document: a file has one collection"})
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

// mapping reads the keys of a mapping into variables, or gives their nodes to functions.
func (l *loader) mapping(n yaml.Node, prefix string, into map[string]any) bool {
	var pairs []*yaml.MappingValueNode
	switch n := n.(type) {
	case *yaml.MappingNode:
		pairs = n.Values
	case *yaml.MappingValueNode:
		pairs = []*yaml.MappingValueNode{n}
	case nil:
		l.faults = append(l.faults, &Error{l.file, 0, "", "it is empty: a collection needs a code and seeds"})
		return false
	default:
		l.faults = append(l.faults, &Error{l.file, yaml.Line(n), strings.TrimSuffix(prefix, "."),
			"keys with values are wanted, as in \"" + sorted(into)[0] + ": …\""})
		return false
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		key := prefix + name
		if first, twice := l.lines[key]; twice {
			l.faults = append(l.faults, &Error{l.file, yaml.Line(pair.Key), key,
				fmt.Sprintf("it is in line %d already", first)})
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
		l.fault(key, "there is no such key; there are %s", strings.Join(sorted(into), ", "))
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
			l.fault(key, "%s is wanted, not %s", want, describeNode(n))
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

// list reads texts; a single one is a list, too.
func (l *loader) list(key string, n yaml.Node, into *[]string) {
	seq, ok := n.(*yaml.SequenceNode)
	if !ok {
		var one string
		if err := yaml.Decode(n, &one); err != nil || yaml.IsNull(n) || isMapping(n) {
			l.fault(key, "a list of texts is wanted, a line each that begins with \"- \"")
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
			l.fault(at, "a text is wanted, not %s", describeNode(entry))
		}
		*into = append(*into, one)
	}
}

func (l *loader) duration(key string, n yaml.Node, into *Duration) {
	var text string
	err := yaml.Decode(n, &text)
	d, perr := time.ParseDuration(text)
	if err != nil || perr != nil {
		l.fault(key, "a time with its unit is wanted, as in 500ms, 1s or 2m, not %s", describeNode(n))
		return
	}
	*into = Duration(d)
}

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

var codes = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

const maxThreads = 1000

// check checks the values, and fills in what follows from others.
func (l *loader) check() {
	c := l.c
	if !codes.MatchString(c.Code) {
		l.fault("code", "%q: up to 32 lower case letters, digits and hyphens are wanted, as in zh", c.Code)
		return
	}
	if c.Directory == "" {
		c.Directory = "crawler_" + c.Code
	}
	if place.ValidName(c.Directory) != nil || strings.ContainsAny(c.Directory, "/:") {
		l.fault("directory", "%q: the name of a folder is wanted, without slashes and not beginning with a dot", c.Directory)
	}
	l.language()
	l.seeds()
	if _, err := weburl.ParseMode(c.Scope); err != nil {
		l.fault("scope", "%q: one of page, prefix, host, domain, any is wanted", c.Scope)
	}
	for key, list := range map[string][]string{"include": c.Include, "exclude": c.Exclude} {
		for i, text := range list {
			if _, err := regexp.Compile(text); err != nil {
				l.entryFault(key, i, "%q is no regular expression: %v", text, err)
			}
		}
	}
	l.numbers()
	for i, name := range c.Charsets {
		if e, err := htmlindex.Get(name); err != nil {
			l.entryFault("charsets", i, "%q: a charset's name of the WHATWG Encoding Standard is wanted, as in gbk", name)
		} else if c.Charsets[i], err = htmlindex.Name(e); err != nil {
			l.entryFault("charsets", i, "%q: %v", name, err)
		}
	}
	if c.Fields != "" {
		if !filepath.IsAbs(c.Fields) {
			c.Fields = filepath.Join(filepath.Dir(l.file), c.Fields)
		}
		if err := c.ReadFieldRules(); err != nil {
			l.fault("fields", "%v: a file of rules is wanted, as kumo check fields reads it", err)
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

// language checks the language, which is the code's if none is named.
func (l *loader) language() {
	c := &l.c.Language
	said := c.Code != ""
	if !said {
		c.Code = l.c.Code
	}
	if now := lang.Current(c.Code); c.Code != AnyLanguage && !slices.Contains(lang.Known(), now) {
		told := fmt.Sprintf("one of %s is wanted, or %s to keep pages whatever they are in", strings.Join(lang.Known(), ", "),
			AnyLanguage)
		if said {
			l.fault("language.code", "%q is no language that can be told: %s", c.Code, told)
		} else {
			l.fault("code", "%q is no language that can be told, so one must be named (language: {code: …}): %s", c.Code, told)
		}
	} else {
		c.Code = now
	}
}

// entryFault is a fault in a list's entry, which has its line if it is written as a list.
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
		l.fault("seeds", "no seeds: at least one URL is wanted, as in \"seeds: [https://example.com/]\"")
	}
	seen := map[string]int{}
	for i, text := range c.Seeds {
		u, err := weburl.Parse(strings.TrimSpace(text))
		if err != nil || !u.IsHTTP() {
			l.entryFault("seeds", i, "%q: a URL that begins with http:// or https:// is wanted", text)
			continue
		}
		c.Seeds[i] = u.Canonical().String()
		if first, twice := seen[c.Seeds[i]]; twice {
			l.entryFault("seeds", i, "%q is the same as entry %d", text, first+1)
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
			l.fault(f.key, "%d: a number from %d to %d is wanted", f.n, f.least, f.most)
		}
	}
	if c.Interval < 0 || c.Interval > Duration(time.Hour) {
		l.fault("interval", "%v: a time from 0s to 1h is wanted", time.Duration(c.Interval))
	}
	for key, share := range map[string]float64{"language.share": c.Language.Share,
		"language.confidence": c.Language.Confidence} {
		if !(share >= 0 && share <= 1) {
			l.fault(key, "%v: a number from 0 to 1 is wanted", share)
		}
	}
}

// maxFieldRules is how many bytes a file of rules has at most.
const maxFieldRules = 1 << 20

// ReadFieldRules reads the file of rules that Fields names.
func (c *Collection) ReadFieldRules() error {
	f, err := os.Open(c.Fields)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
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
