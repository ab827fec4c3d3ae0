package chardet

import (
	_ "embed"
	"strings"
)

// A sample is a text in a language about everyday topics, written for this package, so that its pairs of letters are
// typical. The models are built from the samples at the first use.
type sample struct {
	lang  string
	group string // group of languages that share charsets
	text  string
}

//go:embed samples.txt
var sampleLines string

// samples parses the samples, one per line: language, group and text.
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

// common has the most common characters of languages and of their web pages: one set of characters per line, preceded
// by its name.
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
