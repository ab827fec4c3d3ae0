package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/base/yaml"
	"kumo/internal/content/render"
)

const (
	keyMatch  = "match"
	keyProxy  = "proxy"
	keyHeader = "header"
)

// An overrideSetting is a setting that an override may have.
type overrideSetting struct {
	key    string
	ofHost bool // applies to a host as a whole, not to single URLs
	read   func(o *Override, v any) error
	// text returns the value for display, without secrets, and whether the override sets it
	text func(o *Override) (string, bool)
}

// overrideSettings are all settings, in the order of an override's text.
var overrideSettings = []overrideSetting{
	plainSetting("delay", true, func(o *Override) **time.Duration { return &o.Delay }, readDelay, time.Duration.String),
	plainSetting("per-host", true, func(o *Override) **int { return &o.PerHost }, atLeast[int](1), number),
	plainSetting("max-pages-per-host", true, func(o *Override) **int64 { return &o.PagesPerHost }, atLeast[int64](0),
		number),
	plainSetting("max-bytes-per-host", true, func(o *Override) **int64 { return &o.BytesPerHost }, readSizeOrNone, number),
	plainSetting("user-agent", true, func(o *Override) **string { return &o.UserAgent }, readAgent,
		func(agent string) string { return agent }),
	{keyProxy, true, func(o *Override, v any) (err error) {
		if o.Proxies, err = texts(v); err == nil && len(o.Proxies) > 1 && slices.Contains(o.Proxies, direct) {
			err = errors.New("none and a proxy do not go together")
		}
		return err
	}, func(o *Override) (string, bool) { return strings.Join(withoutUsers(o.Proxies), ", "), o.Proxies != nil }},
	plainSetting("render", true, func(o *Override) **RenderMode { return &o.Render }, ParseRenderMode,
		func(m RenderMode) string { return string(m) }),
	plainSetting("render-wait", true, func(o *Override) **render.Wait { return &o.RenderWait }, render.ParseWait,
		func(w render.Wait) string { return string(w) }),
	plainSetting("usage", true, func(o *Override) **Usage { return &o.Usage }, readUsage, Usage.String),
	plainSetting("depth", false, func(o *Override) **int { return &o.Depth }, readDepth, func(hops int) string {
		if hops < 0 {
			return unlimited
		}
		return number(hops)
	}),
	plainSetting("scope", false, func(o *Override) **weburl.Mode { return &o.Scope }, readScope, weburl.Mode.String),
	plainSetting("recrawl", false, func(o *Override) **Interval { return &o.Recrawl }, readInterval,
		func(i Interval) string {
			if i.Every == 0 {
				return "never"
			}
			return i.Every.String()
		}),
	plainSetting("tries", false, func(o *Override) **int { return &o.Tries }, atLeast[int](1), number),
	plainSetting("max-body", false, func(o *Override) **int64 { return &o.MaxBody }, readSize, number),
	{keyHeader, false, func(o *Override, v any) (err error) { o.Header, err = readFields(v); return err },
		func(o *Override) (string, bool) {
			return strings.Join(slices.Sorted(maps.Keys(o.Header)), ", "), o.Header != nil
		}},
}

// plainSetting returns a setting with a single value, which an override keeps in a field.
func plainSetting[T any](key string, ofHost bool, field func(*Override) **T, read func(string) (*T, error),
	text func(T) string) overrideSetting {
	return overrideSetting{key, ofHost, func(o *Override, v any) error {
		one, err := scalar(v)
		if err == nil {
			*field(o), err = read(one)
		}
		return err
	}, func(o *Override) (string, bool) {
		if v := *field(o); v != nil {
			return text(*v), true
		}
		return "", false
	}}
}

func readUsage(text string) (*Usage, error) {
	u, err := ParseUsage(text)
	return &u, err
}

// OverrideKeys returns the settings that an override may have.
func OverrideKeys() (keys []string) {
	for _, s := range overrideSettings {
		keys = append(keys, s.key)
	}
	return keys
}

// OverrideLevel returns whether a setting in an override applies to a "host" or a "URL"; "" if it is not allowed.
func OverrideLevel(key string) string {
	switch s := findOverrideSetting(key); {
	case s == nil:
		return ""
	case s.ofHost:
		return "host"
	}
	return "URL"
}

func findOverrideSetting(key string) *overrideSetting {
	if i := slices.IndexFunc(overrideSettings, func(s overrideSetting) bool { return s.key == key }); i >= 0 {
		return &overrideSettings[i]
	}
	return nil
}

const (
	maxOverrides = 100_000
	direct       = "none"      // no proxy
	unlimited    = "unlimited" // no depth limit
)

// ParseOverrides parses YAML: an override, or a list of them. Each is a mapping of match and settings:
//
//	match: example.com          # a host with its subdomains; /REGEX/ of URLs; or a mapping of host (may contain *),
//	                            # domain and url that must all match; or a list: one must match
//	delay: 5s
//
// An error names the override and the key.
func ParseOverrides(text string) ([]*Override, error) {
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc, yaml.Ordered()); err != nil {
		return nil, fmt.Errorf("want a mapping such as {match: example.com, delay: 5s}: %w", err)
	}
	list := asList(doc)
	if len(list) > maxOverrides {
		return nil, fmt.Errorf("%d overrides: at most %d are allowed", len(list), maxOverrides)
	}
	var all []*Override
	for i, one := range list {
		o, err := readOverride(one)
		if err != nil {
			return nil, fmt.Errorf("override %d: %w", i+1, err)
		}
		all = append(all, o)
	}
	return all, nil
}

func readOverride(v any) (*Override, error) {
	m, ok := v.(yaml.MapSlice)
	if !ok {
		return nil, fmt.Errorf("%v: want a mapping such as {match: example.com, delay: 5s}", v)
	}
	o := &Override{}
	for _, item := range m {
		if fmt.Sprint(item.Key) == keyMatch {
			if err := o.readConditions(item.Value); err != nil {
				return nil, fmt.Errorf("match: %w", err)
			}
		}
	}
	if len(o.conditions) == 0 {
		return nil, errors.New("match is missing: add the hosts or URLs, as in match: example.com")
	}
	byURL := slices.ContainsFunc(o.conditions, func(m condition) bool { return m.url != nil })
	var keys []string
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		switch {
		case slices.Contains(keys, key):
			return nil, fmt.Errorf("match %s: %s is given twice", o.Name, key)
		case byURL && OverrideLevel(key) == "host":
			return nil, fmt.Errorf("match %s: %s applies to a host as a whole: match by host or domain", o.Name, key)
		}
		if err := o.read(key, item.Value); err != nil {
			return nil, fmt.Errorf("match %s: %s: %w", o.Name, key, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 1 {
		return nil, fmt.Errorf("match %s: no setting given; settings: %s", o.Name, strings.Join(OverrideKeys(), ", "))
	}
	o.Text = o.encode(m)
	return o, nil
}

func (o *Override) readConditions(v any) error {
	var names []string
	for _, one := range asList(v) {
		var m condition
		var name string
		var err error
		if parts, ok := one.(yaml.MapSlice); ok {
			m, name, err = conditionOf(parts)
		} else {
			name, err = scalar(one)
			if err == nil {
				m, err = parseCondition(name)
			}
		}
		if err != nil {
			return err
		}
		o.conditions = append(o.conditions, m)
		names = append(names, name)
	}
	o.Name = strings.Join(names, ", ")
	return nil
}

// parseCondition parses a condition in the form of a block file's line: a host with its subdomains, or a regular
// expression between slashes.
func parseCondition(text string) (m condition, err error) {
	if len(text) > 2 && text[0] == '/' && text[len(text)-1] == '/' {
		m.url, err = regexp.Compile(text[1 : len(text)-1])
		return m, err
	}
	return m, m.setDomain(text)
}

func conditionOf(parts yaml.MapSlice) (m condition, name string, err error) {
	var names []string
	for _, p := range parts {
		key := fmt.Sprint(p.Key)
		text, err := scalar(p.Value)
		if err != nil {
			return m, "", fmt.Errorf("%s: %w", key, err)
		}
		switch key {
		case "domain":
			err = m.setDomain(text)
		case "host":
			err = m.setHost(text)
		case "url":
			m.url, err = regexp.Compile(text)
		case "collection":
			err = errors.New("a crawl has no collections; those of kumo batch have settings in their own files")
		default:
			err = errors.New("unknown key; use host, domain or url")
		}
		if err != nil {
			return m, "", fmt.Errorf("%s: %w", key, err)
		}
		names = append(names, key+" "+text)
	}
	if len(names) == 0 {
		return m, "", errors.New("the mapping is empty; use host, domain or url")
	}
	return m, strings.Join(names, " and "), nil
}

func (m *condition) setDomain(text string) error {
	name, err := hostName(strings.TrimPrefix(strings.TrimPrefix(text, "*"), "."))
	if err == nil && hostnameOf(name) != strings.Trim(name, "[]") {
		err = fmt.Errorf("%q has a port: write {host: %q}", text, text)
	}
	m.domain = hostnameOf(name)
	return err
}

func (m *condition) setHost(text string) (err error) {
	if !strings.Contains(text, "*") {
		m.name, err = hostName(text)
		return err
	}
	pattern := regexp.QuoteMeta(strings.ToLower(text))
	if strings.ContainsAny(text, "/@ \t") {
		return fmt.Errorf("%q is not a host", text)
	}
	pattern = strings.ReplaceAll(pattern, `\*`, `.*`)
	if !strings.Contains(text, ":") {
		pattern += `(:\d+)?`
	}
	m.host, err = regexp.Compile("^" + pattern + "$")
	return err
}

// hostName returns a host in canonical form.
func hostName(text string) (string, error) {
	u, err := weburl.Parse("http://" + text + "/")
	if err != nil || u.Hostname() == "" || strings.ContainsAny(text, "/@?#* ") {
		return "", fmt.Errorf("%q is neither a host nor a /regular expression/", text)
	}
	return u.Canonical().Host(), nil
}

func (o *Override) read(key string, v any) error {
	if key == keyMatch {
		return nil
	}
	s := findOverrideSetting(key)
	if s == nil {
		return fmt.Errorf("unknown setting; settings: %s", strings.Join(OverrideKeys(), ", "))
	}
	return s.read(o, v)
}

func readAgent(text string) (*string, error) {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("want text without control characters")
	}
	return &text, nil
}

func readDepth(text string) (*int, error) {
	if text == unlimited {
		return new(-1), nil
	}
	hops, err := atLeast(0)(text)
	if err != nil {
		return nil, fmt.Errorf("%q: want a number of hops or %s", text, unlimited)
	}
	return hops, nil
}

func readScope(text string) (*weburl.Mode, error) {
	mode, err := weburl.ParseMode(text)
	return &mode, err
}

func atLeast[T int | int64](least T) func(string) (*T, error) {
	return func(text string) (*T, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || T(n) < least || n > math.MaxInt32 {
			return nil, fmt.Errorf("%q: want a whole number, at least %d", text, least)
		}
		return new(T(n)), nil
	}
}

// readSizeOrNone parses a size, or 0.
func readSizeOrNone(text string) (*int64, error) {
	if text == "0" {
		return new(int64), nil
	}
	return readSize(text)
}

func readDelay(text string) (*time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok && err != nil {
		var n float64
		if n, err = strconv.ParseFloat(days, 64); err == nil {
			d = time.Duration(min(n, 1e4) * 24 * float64(time.Hour))
		}
	}
	if err != nil || d < 0 {
		return nil, fmt.Errorf("%q: want a duration with a unit, such as 500ms, 2s or 1m30s", text)
	}
	return &d, nil
}

func readInterval(text string) (*Interval, error) {
	i, err := ParseInterval(text)
	if err == nil && i.Match != nil {
		err = fmt.Errorf("%q: set the URLs by match instead of a regular expression here", text)
	}
	return &i, err
}

var sizeUnits = map[string]float64{"": 1, "B": 1, "K": 1e3, "M": 1e6, "G": 1e9, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}

func readSize(text string) (*int64, error) {
	number := strings.TrimRight(text, "BKMGbkmgi ")
	factor, ok := sizeUnits[strings.ToUpper(strings.TrimSpace(text[len(number):]))]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || n*factor < 1 || n*factor > math.MaxInt64/4 {
		return nil, fmt.Errorf("%q is not a size: write bytes, or a number with KB, KiB, MB, MiB, GB or GiB", text)
	}
	return new(int64(n * factor)), nil
}

// readFields parses header fields: 'NAME: VALUE', a mapping, or a list of these.
func readFields(v any) (http.Header, error) {
	h := http.Header{}
	lines, err := fieldLines(v)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("it is empty")
	}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("%q: want 'NAME: VALUE'", line)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		h[name] = append(h[name], strings.TrimSpace(value))
	}
	return h, nil
}

func fieldLines(v any) (lines []string, err error) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			more, err := fieldLines(one)
			if err != nil {
				return nil, err
			}
			lines = append(lines, more...)
		}
		return lines, nil
	case yaml.MapSlice:
		for _, item := range v {
			value, err := scalar(item.Value)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", item.Key, err)
			}
			lines = append(lines, fmt.Sprint(item.Key)+": "+value)
		}
		return lines, nil
	}
	line, err := scalar(v)
	return []string{line}, err
}

// asList returns a list; a single value becomes a list of one.
func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func scalar(v any) (string, error) {
	switch v := v.(type) {
	case nil, []any, yaml.MapSlice, map[string]any:
		return "", errors.New("want a single value")
	case string:
		return v, nil
	default:
		return fmt.Sprint(v), nil
	}
}

func texts(v any) (all []string, err error) {
	for _, one := range asList(v) {
		text, err := scalar(one)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return nil, errors.New("the list is empty")
	}
	return all, nil
}

// encode returns the override as JSON, which is also YAML: match, then the settings in order.
func (o *Override) encode(m yaml.MapSlice) string {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, key := range append([]string{keyMatch}, OverrideKeys()...) {
		for _, item := range m {
			if fmt.Sprint(item.Key) != key {
				continue
			}
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			value := item.Value
			if key == keyHeader { // sorted by name
				value = o.headerLines()
			}
			encodeValue(&b, key)
			b.WriteByte(':')
			encodeValue(&b, value)
		}
	}
	b.WriteByte('}')
	return b.String()
}

func encodeValue(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case yaml.MapSlice:
		b.WriteByte('{')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeValue(b, fmt.Sprint(item.Key))
			b.WriteByte(':')
			encodeValue(b, item.Value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, one := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeValue(b, one)
		}
		b.WriteByte(']')
	default:
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil { // a number that JSON does not allow
			_ = enc.Encode(fmt.Sprint(v))
		}
		b.Truncate(b.Len() - 1) // the final line feed
	}
}

func (o *Override) headerLines() []any {
	var lines []any
	for _, name := range slices.Sorted(maps.Keys(o.Header)) {
		for _, value := range o.Header[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return lines
}

func withoutUsers(proxies []string) []string {
	all := slices.Clone(proxies)
	for i, p := range all {
		scheme, rest, _ := strings.Cut(p, "://")
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			all[i] = scheme + "://" + rest[at+1:]
		}
	}
	return all
}

// Redact returns the override's text with secrets replaced by mark: the values of header fields for whose names secret
// returns true, and the users in proxy URLs.
func (o *Override) Redact(secret func(name string) bool, mark string) string {
	c := *o
	c.Header = http.Header{}
	for name, values := range o.Header {
		if secret(name) {
			values = []string{mark}
		}
		c.Header[name] = values
	}
	var m yaml.MapSlice
	if err := yaml.Unmarshal([]byte(o.Text), &m, yaml.Ordered()); err != nil {
		return mark // the text comes from encode
	}
	for i, item := range m {
		if item.Key == keyProxy {
			var list []any
			for at, p := range withoutUsers(o.Proxies) {
				if p != o.Proxies[at] {
					p = strings.Replace(p, "://", "://"+mark+"@", 1)
				}
				list = append(list, p)
			}
			m[i].Value = list
		}
	}
	return c.encode(m)
}
