package kumo

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseLimits are the limits of TestProse, in hits per 10,000 words.
var proseLimits = []struct {
	name    string
	limit   float64
	pattern *regexp.Regexp
}{
	{"clauses in place of a noun", 3, regexp.MustCompile(`(?i)\b(?:what|who|whoever|whatever) (?:is|was|are|were|has|have|had|` +
		`comes|came|waits|waited|goes|went|asks|asked|looks|reads|writes|calls|holds|crawls|runs|can|may|must|does|did|do|will)\b` +
		`|\bone that\b`)},
	{"code that speaks", 10, regexp.MustCompile(`(?i)\b(?:says|said|tells|told|knows|asks|asked)\b`)},
}

const (
	proseColumns   = 120
	proseWideLimit = 0.003 // of all lines are wider
)

// proseLine is a line of a comment or of a document.
type proseLine struct {
	file string
	line int
	text string
}

// TestProse counts phrases that make comments and documents hard to read, and lines that are too wide, except for rows
// of tables. They are only the rules of CONTRIBUTING.md that a program can check.
func TestProse(t *testing.T) {
	var lines []proseLine
	wide := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(path, ".go"):
			return goProse(path, &lines)
		case strings.HasSuffix(path, ".md"):
			return markdownProse(path, &lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	hits := make([][]string, len(proseLimits))
	for _, l := range lines {
		words += len(strings.Fields(l.text))
		if !strings.HasPrefix(l.text, "|") && utf8.RuneCountInString(strings.ReplaceAll(l.text, "\t", "    ")) > proseColumns {
			wide++
		}
		for i, p := range proseLimits {
			for range p.pattern.FindAllString(l.text, -1) {
				hits[i] = append(hits[i], fmt.Sprintf("%s:%d: %s", l.file, l.line, strings.TrimSpace(l.text)))
			}
		}
	}
	t.Logf("%d lines, %d words", len(lines), words)
	for i, p := range proseLimits {
		rate := float64(len(hits[i])) * 10_000 / float64(words)
		t.Logf("%s: %.1f in 10,000 words, at most %g", p.name, rate, p.limit)
		if rate > p.limit {
			t.Errorf("%s: %d, for example\n\t%s", p.name, len(hits[i]), strings.Join(sample(hits[i], 20), "\n\t"))
		}
	}
	share := float64(wide) / float64(len(lines))
	t.Logf("lines wider than %d columns: %.2f %%, at most %.2f %%", proseColumns, share*100, proseWideLimit*100)
	if share > proseWideLimit {
		t.Errorf("%d lines are wider than %d columns", wide, proseColumns)
	}
}

// sample returns n elements, spread evenly.
func sample(all []string, n int) []string {
	if len(all) <= n {
		return all
	}
	some := make([]string, 0, n)
	for i := range n {
		some = append(some, all[i*len(all)/n])
	}
	return some
}

// goProse appends the comments of a Go file.
func goProse(path string, lines *[]proseLine) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	rows := bytes.Split(src, []byte("\n"))
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") || strings.HasPrefix(c.Text, "//nolint") {
				continue
			}
			at := files.Position(c.Pos())
			*lines = append(*lines, proseLine{path, at.Line, string(rows[at.Line-1][at.Column-1:])})
		}
	}
	return nil
}

// markdownProse appends the lines of a document that are not code.
func markdownProse(path string, lines *[]proseLine) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	code := false
	for i, row := range strings.Split(string(src), "\n") {
		if strings.HasPrefix(strings.TrimSpace(row), "```") {
			code = !code
			continue
		}
		if !code && strings.TrimSpace(row) != "" {
			*lines = append(*lines, proseLine{path, i + 1, row})
		}
	}
	return nil
}
