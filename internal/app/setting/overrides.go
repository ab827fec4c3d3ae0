package setting

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"kumo/internal/content/policy"
)

const maxOverrideFile = 64 << 20

// overrides returns a list of settings for some hosts or URLs: YAML, or @FILE. An element may contain several; each is
// stored in canonical form.
func overrides(p *[]string) Value {
	return newList(p, "YAML", func(text string) (texts []string, err error) {
		name, isFile := strings.CutPrefix(text, "@")
		if isFile {
			data, err := readFile(name, maxOverrideFile)
			if err != nil {
				return nil, err
			}
			text = string(data)
		} else if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		all, err := policy.ParseOverrides(text)
		if err != nil && isFile {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, one := range all {
			texts = append(texts, one.Text)
		}
		return texts, err
	}, slices.Clone[[]string])
}

// readFile reads a file of at most most bytes.
func readFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return data, err
}
