package chardet

import (
	_ "embed"
	"strings"
)

// A sample is a text in a language, written for this purpose: about daily things, so that its letters stand next to
// each other as they do elsewhere. The models are made of these texts when they are first needed.
type sample struct {
	lang  string
	group string // of languages that share charsets
	text  string
}

//go:embed samples.txt
var sampleLines string

// samples reads a sample a line: language, group and text.
func samples() (all []sample) {
	for line := range strings.Lines(sampleLines) {
		lang, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		group, text, _ := strings.Cut(rest, " ")
		all = append(all, sample{lang, group, text})
	}
	return all
}

//go:embed common.txt
var commonLines string

// common has the most common characters of the languages that are written in them, and of web pages in these: a set of
// characters a line, with its name before it.
var common = func() map[string]map[rune]bool {
	sets := map[string]map[rune]bool{}
	for line := range strings.Lines(commonLines) {
		name, chars, _ := strings.Cut(strings.TrimSpace(line), " ")
		sets[name] = map[rune]bool{}
		for _, r := range chars {
			sets[name][r] = true
		}
	}
	return sets
}()
