package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"kumo/internal/content/lang/ngram"
)

// A group is a language in a script.
type group struct {
	script ngram.Script
	lang   string
}

// texts has the cleaned strings of each group, without duplicates.
type texts map[group][]string

// maxPerSource is the maximum number of bytes of a language from one source, so that no source dominates.
const maxPerSource = 1 << 20

// load reads all files below dir whose format is known.
func load(dir string) (texts, error) {
	c := &collector{texts: texts{}, size: map[string]int{}, seen: map[string]bool{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if lang, read := classify(filepath.ToSlash(rel)); read != nil && lang != "" {
			c.source = source(rel)
			return c.file(path, canonical(lang), read)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read corpus in %s: %w", dir, err)
	}
	c.pairs()
	return c.texts, nil
}

//go:embed pairs.txt
var pairs string

// pairs adds texts of words that differ between Indonesian and Malay. Shared words in these texts do not distinguish
// the languages, but occur in real texts too.
func (c *collector) pairs() {
	c.source = "pairs"
	rng := rand.New(rand.NewPCG(1, 1))
	var id, ms []string
	for line := range strings.Lines(pairs) {
		if left, right, ok := strings.Cut(strings.TrimSpace(line), " | "); ok && !strings.HasPrefix(line, "#") {
			id, ms = append(id, left), append(ms, right)
		}
	}
	for range 6000 {
		var left, right []string
		for range 12 {
			i := rng.IntN(len(id))
			left, right = append(left, id[i]), append(right, ms[i])
		}
		c.add("id", strings.Join(left, " "))
		c.add("ms", strings.Join(right, " "))
	}
}

// A collector gathers strings from files.
type collector struct {
	texts  texts
	source string
	size   map[string]int  // bytes by source and language
	seen   map[string]bool // language and string
}

func (c *collector) file(path, lang string, read func([]byte) ([]message, error)) error {
	if lang == "" || c.full(lang) {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	all, err := read(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, m := range all {
		if m.source != "" && lang == "de" { // one catalog of each program is enough for its English
			c.add("en", m.source)
		}
		if m.source != m.text {
			c.add(lang, m.text)
		}
	}
	return nil
}

// full reports whether the current source has provided enough text of a language.
func (c *collector) full(lang string) bool { return c.size[c.source+" "+lang] > maxPerSource }

func (c *collector) add(lang, text string) {
	key := lang + "\x00" + text
	if len(text) < minLetters || c.seen[key] || c.full(lang) {
		return
	}
	c.seen[key] = true
	text, script, ok := clean(norm.NFC.String(text))
	g := group{script, lang}
	if c.source == "udhr" && script != ngram.Latn && script != ngram.Cyrl {
		return // with a single style for the others, the model would learn the style
	}
	if !ok {
		return
	}
	c.texts[g] = append(c.texts[g], text)
	c.size[c.source+" "+lang] += len(text)
}

// list prints the amount of text of each group.
func (t texts) list(w io.Writer) {
	groups := slices.SortedFunc(maps.Keys(t), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.script, b.script), cmp.Compare(a.lang, b.lang))
	})
	for _, g := range groups {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", g.script, g.lang, len(t[g]), t.size(g))
	}
}

func (t texts) size(g group) (n int) {
	for _, s := range t[g] {
		n += len(s)
	}
	return n
}

// isMainScript reports whether most of the language's text is in the group's script. The rest is romanized or
// untranslated.
func (t texts) isMainScript(g group) bool {
	own := t.size(g)
	for s := range ngram.Scripts {
		if t.size(group{s, g.lang}) > own {
			return false
		}
	}
	return true
}
