// Package settings stores a crawl's settings in a YAML file that users can read and later runs load.
package settings

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/base/yaml"
)

// Name is the name of the settings file in a crawl's folder.
const Name = "config.yaml"

// MaxSize is the maximum size of config.yaml, in bytes.
const MaxSize = yaml.MaxSize

// A Setting is a setting and its effective values.
type Setting struct {
	Key    string
	Values []string
}

// Redacted replaces a secret.
const Redacted = "REDACTED"

// header is the first line of a crawl's config.yaml and distinguishes it from other files.
const header = "# The settings of this crawl, for kumo crawl --config. Secrets are left out.\n"

// Encode encodes the effective settings as config.yaml, in the format that --config reads.
func Encode(all []Setting) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	for _, s := range all {
		var v any = s.Values
		switch {
		case s.Key == overrideKey:
			v = asMappings(s.Values)
		case len(s.Values) == 1:
			v = parseScalar(s.Values[0])
		}
		line, err := yaml.Marshal(map[string]any{s.Key: v})
		if err != nil {
			return nil, err
		}
		b.Write(line)
	}
	if err := yaml.Check(b.Bytes()); err != nil {
		return nil, fmt.Errorf("write %s: the settings could not be read back: %w", Name, err)
	}
	return b.Bytes(), nil
}

// IsFile reports whether the file called name is a config.yaml that a crawl wrote.
func IsFile(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, len(header))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == header
}

// overrideKey is the setting whose values are mappings. A file has them as YAML mappings; a Setting has each as one
// line of YAML.
const overrideKey = "override"

func asMappings(texts []string) (all []any) {
	for _, text := range texts {
		var m yaml.MapSlice
		if err := yaml.Unmarshal([]byte(text), &m, yaml.Ordered()); err != nil {
			all = append(all, text)
			continue
		}
		all = append(all, m)
	}
	return all
}

// parseScalar returns a text that is an integer or a boolean as that type, so that YAML writes it without quotes. Other
// texts are returned unchanged.
func parseScalar(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}

// Read reads a YAML file whose keys are settings and whose values are scalars or lists of scalars. The values of
// override are mappings.
func Read(name string) ([]Setting, error) {
	data, err := yaml.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var items yaml.MapSlice
	if err := yaml.Unmarshal(data, &items, yaml.Ordered()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var settings []Setting
	for _, item := range items {
		value, err := item.Value, error(nil)
		if item.Key == overrideKey {
			value, err = mappingLines(value)
		}
		var values []string
		if err == nil {
			values, err = scalars(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %v: %w", name, item.Key, err)
		}
		settings = append(settings, Setting{Key: fmt.Sprint(item.Key), Values: values})
	}
	return settings, nil
}

// mappingLines replaces mappings by lines of YAML.
func mappingLines(v any) (any, error) {
	if list, ok := v.([]any); ok {
		texts := make([]any, len(list))
		for i, one := range list {
			var err error
			if texts[i], err = mappingLines(one); err != nil {
				return nil, err
			}
		}
		return texts, nil
	}
	if _, ok := v.(yaml.MapSlice); !ok {
		return v, nil
	}
	text, err := yaml.MarshalLine(v)
	return strings.TrimSpace(string(text)), err
}

func scalars(v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		var all []string
		for _, e := range v {
			one, err := scalars(e)
			if err != nil || len(one) != 1 {
				return nil, fmt.Errorf("want a list of single values")
			}
			all = append(all, one[0])
		}
		return all, nil
	case yaml.MapSlice, map[string]any:
		return nil, fmt.Errorf("want a value or a list of values, not a mapping")
	}
	return []string{fmt.Sprint(v)}, nil
}

// Equal reports whether two settings are equal.
func (s Setting) Equal(t Setting) bool { return s.Key == t.Key && slices.Equal(s.Values, t.Values) }

// Map returns the values of settings by key.
func Map(all []Setting) map[string][]string {
	m := make(map[string][]string, len(all))
	for _, s := range all {
		m[s.Key] = s.Values
	}
	return m
}

// FromMap is the inverse of Map, sorted by key.
func FromMap(m map[string][]string) []Setting {
	var all []Setting
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, Setting{Key: key, Values: m[key]})
	}
	return all
}
