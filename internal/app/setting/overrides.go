package setting

import (
	"fmt"
	"io"
	"os"
	"strings"

	"kumo/internal/content/policy"
)

// overrides is a list of settings for some hosts or URLs: YAML, or @FILE. An element may have several; each is kept in
// its canonical form.
type overrides struct{ texts *[]string }

const maxOverrideFile = 64 << 20

func (o overrides) Type() string             { return "YAML" }
func (o overrides) String() string           { return strings.Join(*o.texts, ",") }
func (o overrides) GetSlice() []string       { return *o.texts }
func (o overrides) Append(text string) error { return o.Set(text) }

func (o overrides) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	name, isFile := strings.CutPrefix(text, "@")
	if isFile {
		data, err := readFile(name, maxOverrideFile)
		if err != nil {
			return err
		}
		text = string(data)
	}
	all, err := policy.ParseOverrides(text)
	if err != nil && isFile {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, one := range all {
		*o.texts = append(*o.texts, one.Text)
	}
	return err
}

func (o overrides) Replace(texts []string) error {
	*o.texts = nil
	for _, text := range texts {
		if err := o.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a file of at most so many bytes.
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
