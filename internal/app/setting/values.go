package setting

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/document"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/render"
	"kumo/internal/state/rank"
)

// A Value gives access to a field of Values as text. It has the methods of a flag.
type Value interface {
	String() string
	Set(text string) error
	Type() string // for users and completion: int, SIZE, a|b|c
}

// A List is a Value with several elements. Set appends to it.
type List interface {
	Value
	Append(text string) error
	Replace(texts []string) error
	GetSlice() []string
}

// assign sets a value to texts, one element each if it is a list.
func assign(v Value, texts []string) error {
	if list, ok := v.(List); ok {
		return list.Replace(texts)
	}
	if len(texts) != 1 {
		return fmt.Errorf("give one value, not %d", len(texts))
	}
	return v.Set(texts[0])
}

type textValue struct{ p *string }

// Text returns a value that accepts any text.
func Text(p *string) Value { return textValue{p} }

func (t textValue) String() string        { return *t.p }
func (t textValue) Type() string          { return "string" }
func (t textValue) Set(text string) error { *t.p = text; return nil }

type boolValue struct{ p *bool }

// Bool returns a value that accepts true and false.
func Bool(p *bool) Value { return boolValue{p} }

func (b boolValue) String() string   { return strconv.FormatBool(*b.p) }
func (b boolValue) Type() string     { return "bool" }
func (b boolValue) IsBoolFlag() bool { return true }

func (b boolValue) Set(text string) (err error) {
	*b.p, err = strconv.ParseBool(text)
	return err
}

type intValue[T int | int64] struct{ p *T }

// Int returns a value that accepts whole numbers.
func Int[T int | int64](p *T) Value { return intValue[T]{p} }

func (i intValue[T]) String() string { return strconv.FormatInt(int64(*i.p), 10) }
func (i intValue[T]) Type() string   { return "int" }

func (i intValue[T]) Set(text string) error {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return err
	}
	*i.p = T(n)
	return nil
}

type floatValue struct{ p *float64 }

// Float returns a value that accepts numbers.
func Float(p *float64) Value { return floatValue{p} }

func (f floatValue) String() string { return strconv.FormatFloat(*f.p, 'g', -1, 64) }
func (f floatValue) Type() string   { return "float64" }

func (f floatValue) Set(text string) (err error) {
	if *f.p, err = strconv.ParseFloat(text, 64); err == nil && math.IsNaN(*f.p) {
		err = &strconv.NumError{Func: "ParseFloat", Num: text, Err: strconv.ErrSyntax}
	}
	return err
}

type boundValue struct{ n *int64 }

// Bound returns a value that accepts numbers from 0, which means no limit and is stored as -1 (job.Bound).
func Bound(n *int64) Value { return boundValue{n} }

func (m boundValue) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of 0 or more", text)
	}
	*m.n = job.Bound(n)
	return nil
}

func (m boundValue) String() string { return strconv.FormatInt(max(*m.n, 0), 10) }
func (m boundValue) Type() string   { return "int" }

type durationValue struct{ d *time.Duration }

// Time returns a value that accepts durations in Go's notation, and days and weeks: 90s, 1h30m, 7d, 2w.
func Time(d *time.Duration) Value { return durationValue{d} }

func (d durationValue) Type() string { return "duration" }

func (d durationValue) String() string {
	if d.d == nil || *d.d == 0 {
		return "0"
	}
	return d.d.String()
}

func (d durationValue) Set(text string) (err error) {
	*d.d, err = ParseDuration(text)
	return err
}

type delayBound struct{ d *time.Duration }

// DelayBound returns a value that accepts durations from 0, which is stored as -1.
func DelayBound(d *time.Duration) Value { return delayBound{d} }

func (d delayBound) Type() string { return "duration" }

func (d delayBound) String() string {
	if *d.d <= 0 {
		return "0"
	}
	return d.d.String()
}

func (d delayBound) Set(text string) error {
	bound, err := ParseDuration(text)
	switch {
	case err != nil:
		return err
	case bound < 0:
		return fmt.Errorf("%q: a delay cannot be negative", text)
	case bound == 0:
		bound = -1
	}
	*d.d = bound
	return nil
}

// longUnits matches days and weeks, which time.ParseDuration does not accept.
var longUnits = regexp.MustCompile(`(\d+\.?\d*|\.\d+)([dw])`)

// ParseDuration parses a duration, which may contain days and weeks.
func ParseDuration(text string) (time.Duration, error) {
	hours := longUnits.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil || n > math.MaxInt32 {
			return part
		}
		if n *= 24; part[len(part)-1] == 'w' {
			n *= 7
		}
		return strconv.FormatFloat(n, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(hours)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write a number and its unit, such as 500ms, 90s, 1h30m, 7d or 2w", text)
	}
	return d, nil
}

type sizeValue[T int64 | uint64] struct{ n *T }

// Size returns a value that accepts numbers of bytes: 500, 64KiB, 1.5GB.
func Size[T int64 | uint64](n *T) Value { return sizeValue[T]{n} }

// FormatSize formats a number of bytes with the largest unit that leaves a whole number.
func FormatSize(n int64) string { return sizeValue[int64]{&n}.String() }

var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"B", 1},
}

func (s sizeValue[T]) Set(text string) error {
	number, factor := strings.TrimSpace(text), 1.0
	for _, u := range units {
		if len(number) > len(u.suffix) && strings.EqualFold(number[len(number)-len(u.suffix):], u.suffix) {
			number, factor = strings.TrimSpace(number[:len(number)-len(u.suffix)]), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n*factor > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size: write bytes, or a number with KB, KiB, MB, MiB, GB, GiB", text)
	}
	*s.n = T(n * factor)
	return nil
}

func (s sizeValue[T]) Type() string { return "SIZE" }

func (s sizeValue[T]) String() string {
	if s.n == nil || *s.n == 0 {
		return "0"
	}
	best, text := 0.0, fmt.Sprint(*s.n)
	for _, u := range units {
		if q := float64(*s.n) / u.bytes; len(u.suffix) > 1 && u.bytes > best && q == math.Trunc(q) {
			best, text = u.bytes, strconv.FormatInt(int64(q), 10)+u.suffix
		}
	}
	return text
}

// Words is a Value that is one of a few words.
type Words interface {
	Value
	Words() []string
}

type choice struct {
	get   func() string
	set   func(word string) error
	words []string
}

// Choice returns a value that accepts one of a few words.
func Choice(p *string, words []string) Value {
	return choice{func() string { return *p }, func(w string) error { *p = w; return nil }, words}
}

// renderMode returns a choice of the pages that are rendered.
func renderMode(p *policy.RenderMode) Value {
	return choice{func() string { return string(*p) }, func(w string) error { *p = policy.RenderMode(w); return nil },
		policy.RenderModes}
}

// documentMode returns a choice of what is read of documents.
func documentMode(p *document.Mode) Value {
	return choice{func() string { return string(*p) }, func(w string) error { *p = document.Mode(w); return nil },
		document.Modes}
}

// A renderWait is what a rendered page waits for.
type renderWait struct{ w *render.Wait }

func (r renderWait) Type() string   { return "string" }
func (r renderWait) String() string { return string(*r.w) }

func (r renderWait) Set(text string) error {
	w, err := render.ParseWait(text)
	if err == nil {
		*r.w = *w
	}
	return err
}

func actions(p *[]render.Action) Value {
	return &set{kind: "stringSlice", names: func() (names []string) {
		for _, a := range *p {
			names = append(names, string(a))
		}
		return names
	}, replace: func(names []string) (err error) {
		*p, err = render.ParseActions(names)
		return err
	}}
}

// shotNames are the pictures of --screenshot.
var shotNames = []struct {
	name string
	kind page.ShotKind
}{{"view", page.ShotView}, {"full", page.ShotFull}, {"thumb", page.ShotThumb}}

// screenshots returns a set of pictures of rendered pages.
func screenshots(p *[]page.ShotKind) Value {
	return &set{kind: "stringSlice", names: func() (names []string) {
		for _, s := range shotNames {
			if slices.Contains(*p, s.kind) {
				names = append(names, s.name)
			}
		}
		return names
	}, replace: func(names []string) error {
		*p = nil
		for _, s := range shotNames {
			if slices.Contains(names, s.name) {
				*p = append(*p, s.kind)
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == s.name })
		}
		if len(names) > 0 {
			return fmt.Errorf("%q is not one of view, full, thumb", names[0])
		}
		return nil
	}}
}

func (c choice) Words() []string { return c.words }
func (c choice) Type() string    { return strings.Join(c.words, "|") }
func (c choice) String() string {
	if c.get == nil {
		return ""
	}
	return c.get()
}

func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(c.words, ", "))
	}
	return c.set(text)
}

// ScopeOf returns a choice of the scope of a crawl: which URLs belong to it, relative to its seeds.
func ScopeOf(mode *weburl.Mode) Value {
	return choice{func() string { return mode.String() }, func(word string) (err error) {
		*mode, err = weburl.ParseMode(word)
		return err
	}, []string{"page", "prefix", "host", "domain", "any"}}
}

func sitemaps(p *policy.Sitemaps) Value {
	return choice{func() string { return p.String() }, func(word string) (err error) {
		*p, err = policy.ParseSitemaps(word)
		return err
	}, policy.SitemapsNames()}
}

// obey returns the choice between obey and ignore, stored as true for ignore.
func obey(ignore *bool) Value {
	words := []string{"obey", "ignore"}
	return choice{func() string {
		if *ignore {
			return words[1]
		}
		return words[0]
	}, func(word string) error { *ignore = word == words[1]; return nil }, words}
}

type hops struct{ n *int }

func (h hops) Type() string { return "string" }

func (h hops) String() string {
	if *h.n < 0 {
		return job.NoLimit
	}
	return strconv.Itoa(*h.n)
}

func (h hops) Set(text string) error {
	if text == job.NoLimit {
		*h.n = -1
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("%q: give a number of hops, 0 for the seeds only, or %s", text, job.NoLimit)
	}
	*h.n = n
	return nil
}

// A list is a List of elements. A text may contain several.
type list[S ~[]T, T any] struct {
	p     *S
	parse func(text string) (S, error)
	texts func(S) []string
	kind  string
}

func newList[S ~[]T, T any](p *S, kind string, parse func(string) (S, error), texts func(S) []string) Value {
	return list[S, T]{p, parse, texts, kind}
}

func (l list[S, T]) Type() string             { return l.kind }
func (l list[S, T]) String() string           { return strings.Join(l.GetSlice(), ",") }
func (l list[S, T]) GetSlice() []string       { return l.texts(*l.p) }
func (l list[S, T]) Append(text string) error { return l.Set(text) }

func (l list[S, T]) Set(text string) error {
	more, err := l.parse(text)
	*l.p = append(*l.p, more...)
	return err
}

func (l list[S, T]) Replace(texts []string) error {
	*l.p = nil
	for _, text := range texts {
		if err := l.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// Texts returns a list of texts; each Set adds one.
func Texts(p *[]string) Value {
	return newList(p, "stringArray", func(text string) ([]string, error) { return []string{text}, nil },
		slices.Clone[[]string])
}

func patterns(p *[]*regexp.Regexp) Value {
	return newList(p, "stringArray", func(text string) ([]*regexp.Regexp, error) {
		if text == "" {
			return nil, fmt.Errorf("the pattern is empty, which every URL matches")
		}
		one, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		return []*regexp.Regexp{one}, nil
	}, func(all []*regexp.Regexp) (texts []string) {
		for _, one := range all {
			texts = append(texts, one.String())
		}
		return texts
	})
}

// preferences returns a list of REGEX=WEIGHT.
func preferences(p *rank.Preferences) Value {
	return newList(p, "stringArray", rank.ParsePreference, rank.Preferences.Texts)
}

// A set is a List of names without order or repetition. An element may contain several, separated by commas. The first
// Set replaces the default.
type set struct {
	names   func() []string
	replace func(names []string) error
	kind    string
	changed bool
}

func (s *set) Type() string             { return s.kind }
func (s *set) String() string           { return strings.Join(s.names(), ",") }
func (s *set) GetSlice() []string       { return s.names() }
func (s *set) Append(text string) error { return s.Set(text) }

func (s *set) Replace(texts []string) error {
	s.changed = true
	var names []string
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	return s.replace(names)
}

func (s *set) Set(text string) error {
	if !s.changed {
		return s.Replace([]string{text})
	}
	return s.Replace(append(slices.Clone(s.names()), text))
}

// bodyLimits is a list of TYPE=SIZE.
func bodyLimits(p *[]fetch.TypeLimit) Value {
	return &set{
		names: func() (names []string) {
			for _, l := range *p {
				names = append(names, l.Type+"="+FormatSize(l.Bytes))
			}
			return names
		},
		replace: func(names []string) error {
			limits := make([]fetch.TypeLimit, 0, len(names))
			for _, name := range names {
				mediaType, text, found := strings.Cut(name, "=")
				main, sub, slash := strings.Cut(mediaType, "/")
				l := fetch.TypeLimit{Type: strings.ToLower(mediaType)}
				if !found || !slash || main == "" || sub == "" {
					return fmt.Errorf("%q is not like application/pdf=200MiB", name)
				}
				if err := Size(&l.Bytes).Set(text); err != nil {
					return err
				}
				if l.Bytes <= 0 {
					return fmt.Errorf("%q: the size must be more than 0", name)
				}
				limits = append(limits, l)
			}
			*p = limits
			return nil
		},
		kind: "stringSlice",
	}
}

func canon(p *weburl.Rules) Value {
	return &set{
		names: func() []string { return strings.Split(p.String(), ",") },
		replace: func(names []string) (err error) {
			*p, err = weburl.ParseRules(strings.Join(names, ","))
			return err
		},
		kind: "RULES",
	}
}

func directives(p *policy.Directives) Value {
	return &set{names: func() []string { return p.Names() }, replace: func(names []string) (err error) {
		*p, err = policy.ParseDirectives(names)
		return err
	}, kind: "stringSlice"}
}

// usage returns a value that is what a crawl does if a site does not allow a use.
func usage(p *policy.Usage) Value { return usageValue{p} }

type usageValue struct{ u *policy.Usage }

func (v usageValue) Set(text string) (err error) {
	*v.u, err = policy.ParseUsage(text)
	return err
}

func (v usageValue) Type() string { return "string" }

func (v usageValue) String() string {
	if v.u == nil {
		return policy.Usage(0).String()
	}
	return v.u.String()
}

func names(p *[]string) Value {
	return &set{names: func() []string { return *p }, replace: func(names []string) error { *p = names; return nil },
		kind: "stringSlice"}
}
