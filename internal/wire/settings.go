package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

const settingsName = "config.yaml"

// Redacted stands for a secret.
const Redacted = "REDACTED"

// settingsHead begins a crawl's config.yaml, and tells it from others.
const settingsHead = "# The settings of this crawl, for kumo crawl --config. Secrets are left out.\n"

// settingsFile is config.yaml: the settings in effect, in a form that --config reads.
func settingsFile(settings []Setting) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(settingsHead)
	for _, s := range settings {
		var v any = s.Values
		if len(s.Values) == 1 {
			v = plain(s.Values[0])
		}
		line, err := yaml.Marshal(map[string]any{s.Key: v})
		if err != nil {
			return nil, err
		}
		b.Write(line)
	}
	return b.Bytes(), nil
}

// isSettings reports whether the file at name was written by a crawl.
func isSettings(name string) bool {
	data, err := os.ReadFile(name)
	return err == nil && bytes.HasPrefix(data, []byte(settingsHead))
}

// plain makes a number or a truth value of a text that is one, so that it is written without quotes.
func plain(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}

// SavedSettings reads the settings of the crawl in dir; none when there is no crawl.
func SavedSettings(dir string) ([]Setting, error) {
	settings, err := ReadSettings(filepath.Join(dir, settingsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return settings, ToRepair(err, dir)
}

// ReadSettings reads a YAML file whose keys are settings and whose values are scalars or lists of scalars.
func ReadSettings(name string) ([]Setting, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var items yaml.MapSlice
	if err := yaml.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var settings []Setting
	for _, item := range items {
		values, err := scalars(item.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %v: %w", name, item.Key, err)
		}
		settings = append(settings, Setting{Key: fmt.Sprint(item.Key), Values: values})
	}
	return settings, nil
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
				return nil, fmt.Errorf("a list of single values is wanted")
			}
			all = append(all, one[0])
		}
		return all, nil
	case yaml.MapSlice, map[string]any:
		return nil, fmt.Errorf("a value or a list of values is wanted, not a mapping")
	}
	return []string{fmt.Sprint(v)}, nil
}

// Nearest returns the name that is most like what was typed, "" if none is near.
func Nearest(typed string, names []string) string {
	best, least := "", len(typed)/2+1
	for _, n := range names {
		if d := distance(strings.ToLower(typed), n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is the number of insertions, deletions and replacements between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Same reports whether two settings are equal.
func (s Setting) Same(t Setting) bool { return s.Key == t.Key && slices.Equal(s.Values, t.Values) }
