package yaml_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	library "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"

	"kumo/internal/base/cputime"
	"kumo/internal/base/yaml"
	"kumo/internal/lab/testmain"
)

func repeated(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// numbered repeats a line with numbers from 0.
func numbered(n int, line string) string {
	return repeated(n, func(i int) string { return fmt.Sprintf(line, i) })
}

func chain(n int, format string) string {
	return "x0: &x0 {a: 1}\n" + repeated(n, func(i int) string {
		return fmt.Sprintf("x%d: &x%d "+format+"\n", i+1, i+1, i, i)
	})
}

// bombs are small files that cost the library gigabytes or minutes, by the error message that rejects them.
var bombs = map[string]struct{ text, err string }{
	"brackets":           {strings.Repeat("[", 100_000), "nested"},
	"braces":             {strings.Repeat("{a: ", 25_000), "nested"},
	"dashes":             {strings.Repeat("- ", 50_000), "nested"},
	"question marks":     {strings.Repeat("? ", 50_000), "nested"},
	"colons":             {strings.Repeat("a: ", 50_000), "nested"},
	"dashes in brackets": {"[" + strings.Repeat("- ", 50_000) + "]", "nested"},
	"indentation":        {repeated(500, func(i int) string { return strings.Repeat(" ", i) + "a:\n" }), "nested"},
	"merges":             {chain(28, "{<<: [*x%d, *x%d]}"), "after expanding aliases"},
	"aliases":            {chain(28, "[*x%d, *x%d]"), "after expanding aliases"},
	"long text": {"- &a " + strings.Repeat("x", 50_000) + "\n" + strings.Repeat("- *a\n", 9_000),
		"after expanding aliases"},
	"own alias":        {"a: &a [*a]\n", "within its own anchor"},
	"own merge":        {"a: &a\n  b: 1\n  <<: *a\n", "within its own anchor"},
	"many aliases":     {"- &a 1\n" + strings.Repeat("- *a\n", 20_000), "aliases"},
	"anchors":          {numbered(5_000, "- &a%d 1\n"), "more than 1000 of"},
	"tags":             {"a: " + strings.Repeat("!!str ", 40_000) + "x\n", "more than 1000 of"},
	"explicit keys":    {numbered(5_000, "? a%d\n: b\n"), "more than 1000"},
	"documents":        {strings.Repeat("---\na: 1\n", 5_000), "documents"},
	"directives":       {strings.Repeat("%YAML 1.2\n---\n", 50_000), "more than 1000"},
	"keys":             {numbered(20_000, "a%d: 1\n"), "keys"},
	"keys in braces":   {"{" + numbered(20_000, "a%d: 1, ") + "}", "keys"},
	"keys in brackets": {"[\n" + numbered(20_000, "a%d: 1\n") + "]", "keys"},
	"keys alone":       {"{" + numbered(20_000, "a%d, ") + "}", "keys"},
	"anchored keys":    {numbered(20_000, "!!str a%d: 1\n"), "more than 1000"},
	"empty values":     {strings.Repeat("- {a: }\n", 50_000), "empty"},
	"keys in dashes":   {strings.Repeat("- {a}\n", 50_000), "empty"},
	"empty entries":    {strings.Repeat("-\n", 100_000), "empty"},
	"empty mappings":   {strings.Repeat("- a:\n", 100_000), "empty"},
	"long key":         {strings.Repeat("k", 300_000) + ":\n" + strings.Repeat("- 1\n", 100_000), "too long"},
	"reserved":         {strings.Repeat("@", 200_000), "reserved"},
	"tabs":             {strings.Repeat("a:\t", 50_000), "tab"},
	"commas":           {"[" + strings.Repeat(" ,", 200_000) + "]", ""},
	"signs":            {"[" + strings.Repeat("1,", 600_000) + "]", "more than 500000"},
	"bytes":            {strings.Repeat("x", yaml.MaxSize+1), "more than 16 MiB"},
}

// TestBombs tests that the time and memory of decoding are bounded. The largest accepted file, with 500,000 values,
// costs more than any rejected file.
func TestBombs(t *testing.T) {
	testmain.Slow(t)
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			for _, v := range targets() {
				err := decode(t, []byte(bomb.text), v)
				if err == nil || !strings.Contains(err.Error(), bomb.err) {
					t.Errorf("error is %v, want one with %q", err, bomb.err)
				} else if len(err.Error()) > 20_000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
			}
		})
	}
}

func targets() []any {
	return []any{new(any), new(yaml.MapSlice), new(map[string]any), new([]struct{ A string }), nil}
}

// decode decodes into v, or parses if v is nil. It fails the test if that costs more than its size allows.
func decode(t *testing.T, data []byte, v any) (err error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent := cputime.Of(func() {
		if v == nil {
			_, err = yaml.Parse(data)
		} else {
			err = yaml.Unmarshal(data, v, yaml.Ordered())
		}
		if err != nil {
			_ = err.Error() // the library formats it only now
		}
	})
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if most := uint64(10<<20 + 3000*min(len(data), 500_000)); allocated > most {
		t.Errorf("%d bytes of YAML: %d MB allocated, more than %d", len(data), allocated>>20, most>>20)
	}
	if most := time.Second + time.Duration(min(len(data), 500_000))*10*time.Microsecond; spent > most {
		t.Errorf("%d bytes of YAML: %v, more than %v", len(data), spent, most)
	}
	t.Logf("%d bytes: %d MB allocated, %v", len(data), allocated>>20, spent)
	return err
}

// FuzzUnmarshal tests that decoding neither panics nor costs more than its size allows, and that files within the
// limits are decoded as by the library.
func FuzzUnmarshal(f *testing.F) {
	for _, bomb := range bombs {
		f.Add([]byte(bomb.text[:min(len(bomb.text), 2000)]))
	}
	for _, name := range files(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range targets() {
			if err := decode(t, data, v); err != nil {
				continue
			}
			if n, most := yaml.CountTokens(data), len(lexer.Tokenize(string(data))); n < most {
				t.Errorf("%d tokens are counted as %d", most, n)
			}
		}
	})
}

// files returns the YAML files of the source tree.
func files(t testing.TB) (names []string) {
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(name); err == nil && (ext == ".yaml" || ext == ".yml") {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	return names
}

// TestFiles tests that files of the source tree, and common uses of anchors and merges, are decoded as by the library.
func TestFiles(t *testing.T) {
	texts := []string{
		"",
		"# a comment\n",
		"a: &a {x: 1, y: [2, 3]}\nb:\n  <<: *a\n  z: 4\nc: [*a, *a]\n",
		"base: &base\n  delay: 1s # often\n  depth: 3\nall:\n" + strings.Repeat("- <<: *base\n  match: a.example\n", 500),
		"a: |\n  text - [ { \n  more\nb: >-\n  folded\n\n  text\n",
		"a: 'it''s'\nb: \"\\x41\\n\"\nc: http://example.com/?a=b&c=d#e\nd: -5\ne: - x\n",
		"---\na: 1\n---\nb: 2\n...\n",
		"? a\n: b\n? c\n",
		"a:\n- b\n-\n- c: 1\n  d:\n",
		"[{a: b, c}, [d: e], ~, null]",
		"a: !!str 5\nb: &x !!int 6\nc: *x\n",
		numbered(45_000, "- {match: host%d.example.com, delay: 5s}\n"),
		"override:\n" + numbered(50_000, "- match: host%d.example.com\n  delay: 5s\n"),
	}
	for _, name := range files(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	for _, text := range texts {
		var got, want any
		wantErr := library.UnmarshalWithOptions([]byte(text), &want, library.UseOrderedMap())
		err := decode(t, []byte(text), &got)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
			t.Errorf("%.200q\nis %.200v, %v\nwant %.200v, %v", text, got, err, want, wantErr)
		}
	}
}

// TestErrors tests that errors have a line, and show it.
func TestErrors(t *testing.T) {
	for text, want := range map[string]struct {
		line    int
		message string
	}{
		"a: 1\n# x\nb: [1\nc: 2\n":                         {4, ""},
		"a: 1\n\n\nb: @\n":                                 {4, "reserved"},
		"a: 1\nb: " + strings.Repeat("[", 100):             {2, "nested"},
		"a: 1\nb: &b [1]\nc: &c\n  d: [*b, *c]\n":          {4, "*c"},
		"a: 1\nb: *nothing\n":                              {2, "nothing"},
		"a: 1\n" + strings.Repeat("b", 3000) + ": 1\nc: @": {3, ""},
	} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil {
			t.Errorf("%.60q: no error", text)
			continue
		}
		message, line := yaml.Position(err)
		shown := strings.Contains(err.Error(), fmt.Sprintf("[%d:", line))
		if line != want.line || !strings.Contains(message, want.message) || !shown {
			t.Errorf("%.60q: line %d, %v", text, line, err)
		}
	}
}
