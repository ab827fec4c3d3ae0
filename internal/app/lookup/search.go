package lookup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"kumo/internal/archive/fulltext"
	"kumo/internal/base/vfs"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/jsonl"
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
		s.words = append(s.words, wordPattern(w))
	}
	next, err := a.eachRecord(ctx, cursor, func([]byte) bool { return true }, func(r *Record, gone int64) (bool, error) {
		if r != nil {
			if err := s.check(ctx, r); err != nil {
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

// check takes a record if it fits.
func (s *search) check(ctx context.Context, r *Record) error {
	s.found.Records++
	if s.urls[r.URL] || !s.q.matches(r) || !s.q.matchesHost(r.URL) {
		return nil
	}
	head := strings.Join([]string{cmp.Or(r.Title, r.H1), r.H1, r.Description, r.URL}, "\n")
	left := missingWords(s.words, head)
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
		if err != nil || len(missingWords(left, t.Text)) > 0 {
			return nil //nolint:nilerr // a page that cannot be read has no words
		}
		hit.In, hit.Snippet = "text", excerpt(t.Text, left[0])
	case len(s.words) > 0:
		hit.In, hit.Snippet = "head", excerpt(head, s.words[0])
	}
	s.urls[r.URL] = true
	s.found.Hits = append(s.found.Hits, hit)
	return nil
}

// matchesHost reports whether a URL is of the host that is looked for, or of one below it.
func (q *Query) matchesHost(url string) bool {
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

// missingWords are the words that a text does not have.
func missingWords(words []*regexp.Regexp, text string) (left []*regexp.Regexp) {
	for _, w := range words {
		if !w.MatchString(text) {
			left = append(left, w)
		}
	}
	return left
}

// wordPattern finds a word in whatever case.
func wordPattern(w string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(strings.ToValidUTF8(w, "")))
}

// Excerpt is what stands around the first of words that a text has; "" if it has none.
func Excerpt(text string, words []string) string {
	for _, w := range words {
		if found := excerpt(text, wordPattern(w)); found != "" {
			return found
		}
	}
	return ""
}

// excerpt is what stands around a word.
func excerpt(text string, word *regexp.Regexp) string {
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

// indexDir is the folder of the full-text index in a crawl's.
const indexDir = "index"

// An IndexState is how far a crawl's full-text index is.
type IndexState struct {
	Docs int64   `json:"urls"` // that it has
	Part float64 `json:"part"` // of what was fetched, 0 to 1, by the length of its lines
	Fit  int64   `json:"fit"`  // that fit the query
}

// Index is how far the full-text index is; [fulltext.ErrNoRecord] if there is none.
func (a *Archive) Index() (s IndexState, err error) {
	r, err := fulltext.OpenReader(a.disk, filepath.Join(a.dir, indexDir))
	if err != nil {
		return s, err
	}
	defer r.Close()
	return a.indexState(r), nil
}

// Indexed searches by the full-text index, best first, from the from-th on.
func (a *Archive) Indexed(ctx context.Context, q fulltext.Query, from int64, n int) (*Found, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	r, err := fulltext.OpenReader(a.disk, filepath.Join(a.dir, indexDir))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	state := a.indexState(r)
	found := &Found{Hits: []Hit{}, Index: &state}
	if n = int(min(int64(n), fulltext.MaxHits-from)); n < 1 {
		return found, nil
	}
	x, err := r.Search(ctx, q, int(from), n)
	if err != nil {
		return nil, err
	}
	state.Fit, found.Cut = x.Total, x.Cut
	for i := range x.Hits {
		h := &x.Hits[i]
		rec, err := a.Record(h.Line)
		if err != nil || rec.URL != h.URL { // pages.jsonl was made anew, and the index was not yet
			rec = &Record{-1, jsonl.PageLine{URL: h.URL, Status: h.Status, Time: h.Time, Type: h.Type, Lang: h.Lang,
				Title: h.Title}}
		}
		hit := Hit{Record: *rec, In: "index", Score: h.Score, Pieces: h.Snippet}
		for _, p := range h.Snippet {
			hit.Snippet += p.Text
		}
		found.Hits = append(found.Hits, hit)
	}
	if next := from + int64(len(x.Hits)); len(x.Hits) == n && next < min(x.Total, fulltext.MaxHits) {
		found.Next = &next
	}
	return found, nil
}

// indexState is how far an index is, by the note of who writes it.
func (a *Archive) indexState(r *fulltext.Reader) (s IndexState) {
	s.Docs, _ = r.Docs()
	size, err := a.disk.Size(filepath.Join(a.dir, pagesName))
	if err != nil || size == 0 {
		return s
	}
	text, err := vfs.ReadFile(a.disk, filepath.Join(a.dir, indexDir, "position.json"), 1<<16)
	var p struct{ Lengths []int64 }
	if err == nil && json.Unmarshal(text, &p) == nil && len(p.Lengths) > 0 {
		s.Part = min(1, max(0, float64(p.Lengths[0])/float64(size)))
	}
	return s
}
