package main

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"kumo/internal/content/lang/ngram"
)

// noise is what a translation shares with every other: placeholders, markup, templates, addresses, file names.
var noise = regexp.MustCompile(
	`<[^<>]*>|\{\{[^{}]*\}\}|\[\[[^\[\]|]*\|?|\[https?:[^ \]]*|https?:[^ ]*|\$\{?[A-Za-z0-9_]+\}?|` +
		`%\([a-z_]+\)[sd]|%(\d+\$)?[-+ #0-9.l]*[a-zA-Z]|\{[^{}]*\}|&[a-z]+;|&#\d+;|\\[nt]|[\w.-]*[/@=_][\w./@=_-]*|--[\w-]+`,
)

// marks are shortcut keys and wiki markup inside words.
var marks = strings.NewReplacer("&amp;", "", "&", "", "_", "", "~", "", "'''", "", "''", "", "]]", "")

// minLetters is the least number of letters, in bytes, that a string must have to be worth keeping.
const minLetters = 15

// clean takes the noise out of a string and says in which script the rest is. Strings that are short, or that mix
// scripts, are not kept.
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
