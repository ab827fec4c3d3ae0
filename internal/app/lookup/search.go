package lookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"kumo/internal/archive/fulltext"
	"kumo/internal/content/parse"
)

// A Query is what is looked for. The zero value takes all records.
type Query struct {
	Filter
	Words    []string // each has to be in the URL, in what the page says of itself or, unless HeadOnly, in its text
	Host     string   // it, or one below it
	HeadOnly bool     // no text is read
}

// Check says what is wrong with a query.
func (q *Query) Check() error {
	if len(q.Words) > maxWords || len(strings.Join(q.Words, "")) > maxWordBytes {
		return fmt.Errorf("at most %d words of together %d bytes can be looked for", maxWords, maxWordBytes)
	}
	return q.Filter.Check()
}

const (
	maxWords     = 16
	maxWordBytes = 1000
)

// What is done for one search.
const (
	searchBytes = 32 << 20        // of lines that are gone through
	searchTexts = 1000            // answers whose text is read
	searchTime  = 5 * time.Second // after which no more is
	snippet     = 120             // bytes before and behind what was found
)

// A Hit is a record that was found.
type Hit struct {
	Record
	// where the last of the words was: head, which is the URL and what the page says of itself, or text; index, by which
	// it was found
	In string `json:"in,omitempty"`
	// what stands around the first word, or in the index around most words
	Snippet string  `json:"snippet,omitempty"`
	Score   float64 `json:"score,omitempty"` // by the index: how well it fits
	// by the index: the snippet in pieces, each of which was looked for (match) or not
	Pieces []fulltext.Piece `json:"pieces,omitempty"`
}

// Found is what a search has found, the newest first, and how far it went.
type Found struct {
	Hits    []Hit  `json:"hits"`
	Next    *int64 `json:"next,omitempty"` // goes on behind these as "cursor"; missing: all was gone through
	Records int    `json:"records"`        // that were gone through
	Texts   int    `json:"texts"`          // of these, those whose text was read
	Cut     string `json:"cut,omitempty"`  // why the search ended though fewer were found than were asked for
	// that was searched; missing: there is none, and records were gone through
	Index *IndexState `json:"index,omitempty"`
}

// Search goes through a bounded part of the crawl's records, from a cursor on, and gives up to n that fit. There is no
// index: texts are read out of the archive.
func (a *Archive) Search(ctx context.Context, q Query, cursor int64, n int) (*Found, error) {
	s := &search{a: a, q: q, found: &Found{Hits: []Hit{}}, end: time.Now().Add(searchTime), urls: map[string]bool{}}
	for _, w := range q.Words {
		s.words = append(s.words, wordOf(w))
	}
	next, err := a.each(ctx, cursor, func([]byte) bool { return true }, func(r *Record, gone int64) (bool, error) {
		if r != nil {
			if err := s.look(ctx, r); err != nil {
				return false, err
			}
		}
		switch {
		case gone >= searchBytes:
			s.found.Cut = fmt.Sprintf("%d records were gone through", s.found.Records)
		case s.found.Texts >= searchTexts:
			s.found.Cut = fmt.Sprintf("the texts of %d pages were read", s.found.Texts)
		case time.Now().After(s.end):
			s.found.Cut = fmt.Sprintf("it took %v", searchTime)
		}
		return len(s.found.Hits) < n && s.found.Cut == "", nil
	})
	if err != nil {
		return nil, err
	}
	if next > 0 {
		s.found.Next = &next
	}
	if next == 0 || len(s.found.Hits) == n {
		s.found.Cut = ""
	}
	return s.found, nil
}

type search struct {
	a     *Archive
	q     Query
	words []*regexp.Regexp
	found *Found
	end   time.Time
	urls  map[string]bool // that were found
}

// look takes a record if it fits.
func (s *search) look(ctx context.Context, r *Record) error {
	s.found.Records++
	if s.urls[r.URL] || !s.q.takes(r) || !s.q.hosts(r.URL) {
		return nil
	}
	head := strings.Join([]string{cmp.Or(r.Title, r.H1), r.H1, r.Description, r.URL}, "\n")
	left := missing(s.words, head)
	hit := Hit{Record: *r}
	switch {
	case len(left) > 0 && (s.q.HeadOnly || !hasText(r)):
		return nil
	case len(left) > 0:
		resp, err := s.a.Answer(ctx, r)
		if s.found.Texts++; err != nil {
			if errors.Is(err, ErrNoAnswer) {
				return nil // what is damaged is kumo verify's to tell of
			}
			return err
		}
		t, err := TextOf(resp)
		if err != nil || len(missing(left, t.Text)) > 0 {
			return nil //nolint:nilerr // a page that cannot be read has no words
		}
		hit.In, hit.Snippet = "text", around(t.Text, left[0])
	case len(s.words) > 0:
		hit.In, hit.Snippet = "head", around(head, s.words[0])
	}
	s.urls[r.URL] = true
	s.found.Hits = append(s.found.Hits, hit)
	return nil
}

// hosts reports whether a URL is of the host that is looked for, or of one below it.
func (q *Query) hosts(url string) bool {
	if q.Host == "" {
		return true
	}
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	bare, _, _ := strings.Cut(host, ":")
	want := strings.ToLower(q.Host)
	return host == want || bare == want || strings.HasSuffix(host, "."+want) || strings.HasSuffix(bare, "."+want)
}

// hasText reports whether a record is of a page with a text of its own: what repeats an earlier answer is found by
// that.
func hasText(r *Record) bool {
	kind := cmp.Or(r.Sniffed, r.Type)
	return r.Status/100 == 2 && r.Revisit == "" && r.WARC != "" && (parse.IsHTML(kind) || IsText(kind))
}

// missing are the words that a text does not have.
func missing(words []*regexp.Regexp, text string) (left []*regexp.Regexp) {
	for _, w := range words {
		if !w.MatchString(text) {
			left = append(left, w)
		}
	}
	return left
}

// wordOf finds a word in whatever case.
func wordOf(w string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(strings.ToValidUTF8(w, "")))
}

// Around is what stands around the first of words that a text has; "" if it has none.
func Around(text string, words []string) string {
	for _, w := range words {
		if found := around(text, wordOf(w)); found != "" {
			return found
		}
	}
	return ""
}

// around is what stands around a word.
func around(text string, word *regexp.Regexp) string {
	at := word.FindStringIndex(text)
	if at == nil {
		return ""
	}
	part, _ := Part(text, max(at[0]-snippet, 0), at[1]-max(at[0]-snippet, 0)+snippet)
	return strings.Join(strings.Fields(part), " ")
}

// Part is up to n bytes of a text from a place on, whole characters, and where the next part begins.
func Part(text string, from, n int) (part string, next int) {
	from = boundary(text, min(max(from, 0), len(text)))
	next = boundary(text, from+min(max(n, utf8.UTFMax), len(text)-from))
	return text[from:next], next
}

// boundary is where the character at a place begins; the place itself, where there is none.
func boundary(text string, at int) int {
	for back := range min(utf8.UTFMax, at+1) {
		if at == len(text) || utf8.RuneStart(text[at-back]) {
			return at - back
		}
	}
	return at
}
