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

// A Query is what is looked for.
type Query struct {
	parts   []part
	letters int // parts that end with a letter which stands for all that begins with it
}

// A part is a word, a phrase or a filter.
type part struct {
	not    bool
	text   string   // words that follow each other; "" in a filter
	filter []string // words for filters, of which one has to be there
}

// What a query has at most.
const (
	maxQuery   = 1000 // bytes
	maxParts   = 32
	maxRow     = 32 // words of a phrase
	maxLetters = 4
)

// Fields are what filters go by.
var fields = []string{"host", "lang", "status", "type", "day"}

// Parse reads a query: words, all of which have to be there; "words that follow each other"; -what must not be there;
// and filters, as host:example.com.
func Parse(text string) (q Query, err error) {
	if len(text) > maxQuery {
		return q, fmt.Errorf("a query has at most %d bytes", maxQuery)
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
				return q, fmt.Errorf(`a phrase begins with " and has no end`)
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
		return fmt.Errorf("a query has at most %d words, phrases and filters", maxParts)
	}
	return nil
}

func (q *Query) word(word string, not, quoted bool) error {
	if !quoted && strings.Contains(word, "*") {
		return fmt.Errorf("%q: a * stands for nothing here: words are found by their stems", word)
	}
	var s words.Splitter
	row := s.Query(word, "")
	switch {
	case len(row) == 0:
		return fmt.Errorf("%q has no word that can be found: letters or digits, %d bytes at most", word, words.MaxWord)
	case len(row) > maxRow:
		return fmt.Errorf("what is to be found in a row has at most %d words (letters of Chinese, Japanese and the like "+
			"count as words), and this has %d: %q",
			maxRow, len(row), word)
	case row[len(row)-1].Prefix:
		if q.letters++; q.letters > maxLetters {
			return fmt.Errorf("%q: a query has at most %d single letters of Chinese, Japanese and the like", word, maxLetters)
		}
	}
	return q.add(part{not: not, text: word})
}

// Filter adds a filter; of values that are separated by commas one has to fit.
func (q *Query) Filter(field, values string, not bool) error {
	if !slices.Contains(fields, field) {
		return fmt.Errorf("there is no field %q: there are %s; a word with a colon stands in quotation marks", field,
			strings.Join(fields, ", "))
	}
	p := part{not: not}
	for value := range strings.SplitSeq(values, ",") {
		term, err := filterTerm(field, strings.ToLower(strings.TrimSpace(value)))
		if err != nil {
			return err
		}
		if p.filter = append(p.filter, term); len(p.filter) > maxParts {
			return fmt.Errorf("%s: there are at most %d values", field, maxParts)
		}
	}
	return q.add(p)
}

func filterTerm(field, value string) (string, error) {
	if value == "" || len(value) > maxTerm-2 {
		return "", fmt.Errorf("%s: a value is missing, or too long", field)
	}
	switch field {
	case "host":
		if _, rest, has := strings.Cut(value, "://"); has {
			value = rest
		}
		value = strings.Trim(value, "./")
		if u, err := weburl.Parse("http://" + value); err == nil && strings.ContainsFunc(value, beyondASCII) {
			value = u.Host() // of münchen.de it is xn--mnchen-3ya.de
		}
		if len(byHost+value) > maxTerm {
			return "", fmt.Errorf("host: a value is too long")
		}
		return byHost + value, nil
	case "lang":
		return byLang + value, nil
	case "status":
		class, is := strings.CutSuffix(value, "xx")
		if _, err := strconv.Atoi(class); err != nil || is && len(class) != 1 || !is && len(class) != 3 {
			return "", fmt.Errorf("status %q: wanted is a number such as 404, or a class such as 4xx", value)
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
		return "", fmt.Errorf("day %q: wanted is a day such as 2026-11-26, a month such as 2026-11, or a year", value)
	}
}

func beyondASCII(r rune) bool { return r >= utf8.RuneSelf }

// Check says what is wrong with a query as a whole.
func (q *Query) Check() error {
	if !slices.ContainsFunc(q.parts, func(p part) bool { return !p.not }) {
		return fmt.Errorf("the query says nothing that is to be there: a word, a phrase, or a filter")
	}
	return nil
}

// langs are the languages by which a query's words are made: all of which there are documents, or those that it names.
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

// rows are the rows of words that a text may have for what is looked for: in each language one, each once.
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
