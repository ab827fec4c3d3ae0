package main

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"kumo/internal/content/lang/ngram"
)

// noise matches parts of a translation that are the same in every language: placeholders, markup, templates, addresses,
// file names.
var noise = regexp.MustCompile(
	`<[^<>]*>|\{\{[^{}]*\}\}|\[\[[^\[\]|]*\|?|\[https?:[^ \]]*|https?:[^ ]*|\$\{?[A-Za-z0-9_]+\}?|` +
		`%\([a-z_]+\)[sd]|%(\d+\$)?[-+ #0-9.l]*[a-zA-Z]|\{[^{}]*\}|&[a-z]+;|&#\d+;|\\[nt]|[\w.-]*[/@=_][\w./@=_-]*|--[\w-]+`,
)

// marks are shortcut keys and wiki markup inside words.
var marks = strings.NewReplacer("&amp;", "", "&", "", "_", "", "~", "", "'''", "", "''", "", "]]", "")

// minLetters is the minimum length of a cleaned string, in bytes.
const minLetters = 15

// clean removes noise from a string and returns it with its script. It returns false for strings that are short or mix
// scripts.
func clean(s string) (string, ngram.Script, bool) {
	if !utf8.ValidString(s) {
		return "", 0, false
	}
	s = marks.Replace(noise.ReplaceAllString(s, " . "))
	count := ngram.Census([]byte(s))
	count[ngram.Hani] += count[ngram.Kana]
	count[ngram.Kana] = 0
	best, total := ngram.Latn, 0
	for i := ngram.Latn; i < ngram.Scripts; i++ {
		total += count[i]
		if count[i] > count[best] {
			best = i
		}
	}
	return s, best, count[best] >= minLetters && 4*count[best] >= 3*total
}
