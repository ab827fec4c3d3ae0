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

// A Query selects records by words. The zero value selects all.
type Query struct {
	Filter
	Words    []string // each must be in the URL, the metadata or, unless HeadOnly, the text
	Host     string   // the host, or a subdomain of it
	HeadOnly bool     // do not read texts
}

// Check returns an error if the query is invalid.
func (q *Query) Check() error {
	if len(q.Words) > maxWords || len(strings.Join(q.Words, "")) > maxWordBytes {
		return fmt.Errorf("a search can have at most %d words and %d bytes in total", maxWords, maxWordBytes)
	}
	return q.Filter.Check()
}

const (
	maxWords     = 16
	maxWordBytes = 1000
)

// Limits of one search.
const (
	searchBytes = 32 << 20        // scanned lines
	searchTexts = 1000            // responses whose text is read
	searchTime  = 5 * time.Second // after which no more is
	snippet     = 120             // bytes before and after the match
)

// A Hit is a matching record.
type Hit struct {
	Record
	// Where the last matching word was found: head (the URL and metadata), text, or index for a search by the full-text
	// index.
	In string `json:"in,omitempty"`
	// The text around the first word or, with the index, around most words.
	Snippet string  `json:"snippet,omitempty"`
	Score   float64 `json:"score,omitempty"` // relevance, with the index
	// With the index: the snippet in pieces. Each piece is a match or the text between matches.
	Pieces []fulltext.Piece `json:"pieces,omitempty"`
}

// Found is the result of a search, newest first, and its extent.
type Found struct {
	Hits    []Hit  `json:"hits"`
	Next    *int64 `json:"next,omitempty"` // "cursor" for the next call; missing at the end
	Records int    `json:"records"`        // scanned records
	Texts   int    `json:"texts"`          // of these, records whose text was read
	Cut     string `json:"cut,omitempty"`  // why the search ended early
	// The index that was used; missing if records were scanned.
	Index *IndexState `json:"index,omitempty"`
}

// Search scans a bounded part of the crawl's records, starting at a cursor, and returns up to n that match. It uses no
// index, but reads texts from the archive.
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
			s.found.Cut = fmt.Sprintf("%d records were scanned", s.found.Records)
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
	urls  map[string]bool // URLs that were found
}

// check adds a record to the result if it matches.
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
		resp, err := s.a.Document(ctx, r)
		if s.found.Texts++; err != nil {
			if errors.Is(err, ErrNoAnswer) {
				return nil // kumo verify reports damage
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

// matchesHost reports whether a URL is on the query's host or a subdomain of it.
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

// hasText reports whether a record has a text of its own. A revisit has not: its original is found instead.
func hasText(r *Record) bool {
	kind := cmp.Or(r.Sniffed, r.Type)
	return r.Status/100 == 2 && r.Revisit == "" && r.WARC != "" && (parse.IsHTML(kind) || IsText(kind) || hasDocument(r))
}

// hasDocument reports whether a record is a document that the crawl could read.
func hasDocument(r *Record) bool {
	return r.Document != nil && r.Document.WhyNot == "" && r.Document.Pages > 0
}

// missingWords returns the words that are not in text.
func missingWords(words []*regexp.Regexp, text string) (left []*regexp.Regexp) {
	for _, w := range words {
		if !w.MatchString(text) {
			left = append(left, w)
		}
	}
	return left
}

// wordPattern returns a case-insensitive pattern for a word.
func wordPattern(w string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(strings.ToValidUTF8(w, "")))
}

// Excerpt returns the text around the first of words that it contains; "" if it contains none.
func Excerpt(text string, words []string) string {
	for _, w := range words {
		if found := excerpt(text, wordPattern(w)); found != "" {
			return found
		}
	}
	return ""
}

// excerpt returns the text around a match.
func excerpt(text string, word *regexp.Regexp) string {
	at := word.FindStringIndex(text)
	if at == nil {
		return ""
	}
	part, _ := Part(text, max(at[0]-snippet, 0), at[1]-max(at[0]-snippet, 0)+snippet)
	return strings.Join(strings.Fields(part), " ")
}

// Part returns up to n bytes of a text from an offset, without splitting characters, and the offset of the next part.
func Part(text string, from, n int) (part string, next int) {
	from = boundary(text, min(max(from, 0), len(text)))
	next = boundary(text, from+min(max(n, utf8.UTFMax), len(text)-from))
	return text[from:next], next
}

// boundary returns the offset of the beginning of the character at an offset; the offset itself if there is none.
func boundary(text string, at int) int {
	for back := range min(utf8.UTFMax, at+1) {
		if at == len(text) || utf8.RuneStart(text[at-back]) {
			return at - back
		}
	}
	return at
}

// indexDir is the subfolder with the full-text index.
const indexDir = "index"

// An IndexState is the progress of a crawl's full-text index.
type IndexState struct {
	Docs int64   `json:"urls"` // indexed URLs
	Part float64 `json:"part"` // indexed part of pages.jsonl, from 0 to 1
	Fit  int64   `json:"fit"`  // matches of the query
}

// Index returns the progress of the full-text index; [fulltext.ErrNoIndex] if there is none.
func (a *Archive) Index() (s IndexState, err error) {
	r, err := fulltext.OpenReader(a.disk, filepath.Join(a.dir, indexDir))
	if err != nil {
		return s, err
	}
	defer r.Close()
	return a.indexState(r), nil
}

// Indexed searches with the full-text index, best matches first, starting at the from-th.
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
		if err != nil || rec.URL != h.URL { // pages.jsonl was rewritten, and the index not yet
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

// indexState returns the progress of an index, from the file of the process that writes it.
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
