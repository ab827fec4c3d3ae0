package fulltext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kumo/internal/archive/fulltext/words"
	"kumo/internal/base/weburl"
)

// A Query is a parsed query.
type Query struct {
	parts   []part
	letters int // parts that end with a single letter, which matches all terms that begin with it
}

// A part is a word, a phrase or a filter.
type part struct {
	not    bool
	text   string   // word or phrase; "" for a filter
	filter []string // filter terms; one must match
}

// Limits of a query.
const (
	maxQuery   = 1000 // bytes
	maxParts   = 32
	maxRow     = 32 // words in a phrase
	maxLetters = 4
)

// fields are the fields of filters.
var fields = []string{"host", "lang", "status", "type", "day"}

// Parse parses a query: words, which must all occur; "phrases in quotes"; -excluded words; and filters such as
// host:example.com.
func Parse(text string) (q Query, err error) {
	if len(text) > maxQuery {
		return q, fmt.Errorf("the query is too long: the limit is %d bytes", maxQuery)
	}
	if !utf8.ValidString(text) {
		return q, fmt.Errorf("the query is not valid UTF-8")
	}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		not := false
		if strings.HasPrefix(rest, "-") && len(rest) > 1 && rest[1] != '-' {
			not, rest = true, rest[1:]
		}
		word, field, quoted := "", "", false
		if end := strings.IndexFunc(rest, func(c rune) bool { return unicode.IsSpace(c) || c == '"' || c == ':' }); end > 0 &&
			rest[end] == ':' {
			field, rest = rest[:end], rest[end+1:]
		}
		if strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return q, fmt.Errorf(`missing " at the end of a phrase`)
			}
			word, rest, quoted = rest[1:end+1], rest[end+2:], true
		} else {
			end := strings.IndexFunc(rest, func(c rune) bool { return unicode.IsSpace(c) || c == '"' })
			if end < 0 {
				end = len(rest)
			}
			word, rest = rest[:end], rest[end:]
		}
		if field != "" {
			err = q.Filter(field, word, not)
		} else {
			err = q.word(word, not, quoted)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

func (q *Query) add(p part) error {
	if q.parts = append(q.parts, p); len(q.parts) > maxParts {
		return fmt.Errorf("too many words, phrases and filters: the limit is %d", maxParts)
	}
	return nil
}

func (q *Query) word(word string, not, quoted bool) error {
	if !quoted && strings.Contains(word, "*") {
		return fmt.Errorf("%q: * is not supported: words are found by their stems", word)
	}
	var s words.Splitter
	row := s.Query(word, "")
	switch {
	case len(row) == 0:
		return fmt.Errorf("%q cannot be found: a word has letters or digits, and at most %d bytes", word, words.MaxWord)
	case len(row) > maxRow:
		return fmt.Errorf("too many words in a phrase: the limit is %d (letters of Chinese, Japanese and similar scripts "+
			"count as words), and this has %d: %q",
			maxRow, len(row), word)
	case row[len(row)-1].Prefix:
		if q.letters++; q.letters > maxLetters {
			return fmt.Errorf("%q: too many single letters of Chinese, Japanese and similar scripts: the limit is %d",
				word, maxLetters)
		}
	}
	return q.add(part{not: not, text: word})
}

// Filter adds a filter. values are separated by commas, and one of them must match.
func (q *Query) Filter(field, values string, not bool) error {
	if !slices.Contains(fields, field) {
		return fmt.Errorf("unknown field %q: the fields are %s; quote a word that contains a colon", field,
			strings.Join(fields, ", "))
	}
	p := part{not: not}
	for value := range strings.SplitSeq(values, ",") {
		term, err := filterTerm(field, strings.ToLower(strings.TrimSpace(value)))
		if err != nil {
			return err
		}
		if p.filter = append(p.filter, term); len(p.filter) > maxParts {
			return fmt.Errorf("%s: too many values: the limit is %d", field, maxParts)
		}
	}
	return q.add(p)
}

func filterTerm(field, value string) (string, error) {
	if value == "" || len(value) > maxTerm-2 {
		return "", fmt.Errorf("%s: missing value, or value too long", field)
	}
	switch field {
	case "host":
		if _, rest, has := strings.Cut(value, "://"); has {
			value = rest
		}
		value = strings.Trim(value, "./")
		if u, err := weburl.Parse("http://" + value); err == nil && strings.ContainsFunc(value, beyondASCII) {
			value = u.Host() // münchen.de becomes xn--mnchen-3ya.de
		}
		if len(byHost+value) > maxTerm {
			return "", fmt.Errorf("host: value too long")
		}
		return byHost + value, nil
	case "lang":
		return byLang + value, nil
	case "status":
		class, is := strings.CutSuffix(value, "xx")
		if _, err := strconv.Atoi(class); err != nil || is && len(class) != 1 || !is && len(class) != 3 {
			return "", fmt.Errorf("status %q: want a number such as 404, or a class such as 4xx", value)
		}
		return byStatus + value, nil
	case "type":
		return byType + strings.TrimRight(value, "/"), nil
	default:
		for _, form := range []string{"2006-01-02", "2006-01", "2006"} {
			if _, err := time.Parse(form, value); err == nil {
				return byDay + value, nil
			}
		}
		return "", fmt.Errorf("day %q: want a day such as 2026-11-26, a month such as 2026-11, or a year", value)
	}
}

func beyondASCII(r rune) bool { return r >= utf8.RuneSelf }

// Check returns an error if the query as a whole is invalid.
func (q *Query) Check() error {
	if !slices.ContainsFunc(q.parts, func(p part) bool { return !p.not }) {
		return fmt.Errorf("the query has no word, phrase or filter that must match")
	}
	return nil
}

// langs returns the languages in which the query's words are stemmed: those of its filters, or all of the index.
func (q *Query) langs(all []string) []string {
	for _, p := range q.parts {
		if p.not || len(p.filter) == 0 || !strings.HasPrefix(p.filter[0], byLang) {
			continue
		}
		all = nil
		for _, term := range p.filter {
			all = append(all, langOf(strings.TrimPrefix(term, byLang)))
		}
	}
	return append([]string{""}, all...)
}

// rows returns the sequences of terms that match the part, without duplicates: one for each language.
func (p *part) rows(s *words.Splitter, langs []string) (all [][]words.Word) {
	known := map[string]bool{}
	for _, lang := range langs {
		row := s.Query(p.text, lang)
		var key strings.Builder
		for _, w := range row {
			key.WriteString(w.Term + "\x00")
		}
		if len(row) > 0 && !known[key.String()] {
			known[key.String()] = true
			all = append(all, row)
		}
	}
	return all
}
