package fulltext

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"kumo/internal/archive/fulltext/words"
	"kumo/internal/base/vfs"
)

// A Reader searches an index as of the time when it was opened. It is not safe for concurrent use.
type Reader struct {
	man      manifest
	segments []*segment
}

// openAttempts limits the retries of OpenReader if files of the manifest were merged before it opened them.
const openAttempts = 5

// OpenReader opens an index for reading. It returns ErrNoIndex if there is none. The caller closes the reader.
func OpenReader(disk vfs.FS, dir string) (r *Reader, err error) {
	for range openAttempts {
		r = &Reader{}
		if r.man, err = readManifest(disk, dir); err != nil {
			return nil, err
		}
		for i := range r.man.Segments {
			var s *segment
			if s, err = openSegment(disk, dir, &r.man.Segments[i]); err != nil {
				break
			}
			r.segments = append(r.segments, s)
		}
		if err == nil {
			return r, nil
		}
		r.Close()
		if _, is := errors.AsType[*missingFile](err); !is {
			return nil, err
		}
	}
	return nil, err
}

// Close closes the files.
func (r *Reader) Close() {
	for _, s := range r.segments {
		s.close()
	}
}

// Docs returns the number of documents, and the bytes of the files.
func (r *Reader) Docs() (docs, bytes int64) {
	for i := range r.man.Segments {
		docs += int64(r.man.Segments[i].live())
		bytes += r.man.Segments[i].Bytes
	}
	return docs, bytes
}

// MaxHits is the number of documents of a search that can be retrieved. A narrower query finds the others.
const MaxHits = 1000

// A Result is the result of a search.
type Result struct {
	Hits  []Hit
	Total int64  // matching documents
	Cut   string // why the search is incomplete; "" if it is complete
}

// A Hit is a document that matches.
type Hit struct {
	Doc
	Score   float64
	Snippet []Piece
}

// Search returns n matching documents, from the from-th best on, with snippets. When ctx ends, it returns the best ones
// found until then.
func (r *Reader) Search(ctx context.Context, q Query, from, n int) (*Result, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if from < 0 || n < 1 || n > MaxHits || from > MaxHits-n {
		return nil, fmt.Errorf("only the first %d results are available", MaxHits)
	}
	s := &search{r: r, most: from + n, found: &Result{}, pace: &pace{ctx: ctx}}
	err := s.prepare(&q)
	for i := 0; i < len(r.segments) && err == nil; i++ {
		err = s.searchSegment(i)
	}
	if errors.Is(err, errTimeout) {
		s.markIncomplete("search timed out: results are incomplete")
	} else if err != nil {
		return nil, err
	}
	slices.SortFunc(s.best, func(a, b candidate) int { return b.compare(a) })
	for i, c := range s.best[min(from, len(s.best)):] {
		d, err := r.segments[c.segment].doc(c.doc)
		if err != nil {
			return nil, err
		}
		h := Hit{Doc: d, Score: c.score}
		switch {
		case i < minSnippets || ctx.Err() == nil:
			h.Snippet = s.snippet(&d)
		case s.found.Cut == "":
			s.markIncomplete("search timed out: some results have no snippet")
		}
		s.found.Hits = append(s.found.Hits, h)
	}
	return s.found, nil
}

// minSnippets is the number of snippets that are made even after the timeout.
const minSnippets = 10

// markIncomplete records why the search is incomplete.
func (s *search) markIncomplete(why string) {
	if s.found.Cut != "" {
		s.found.Cut += "; "
	}
	s.found.Cut += why
}

// A pace limits the time of a search.
type pace struct {
	ctx   context.Context //nolint:containedctx // it is one search's
	steps int
}

// errTimeout ends a search at its timeout.
var errTimeout = errors.New("search timed out")

// step is called for each unit of work, and returns an error at the timeout. A nil pace has none.
func (p *pace) step() error {
	if p == nil {
		return nil
	}
	if p.steps++; p.steps%256 == 0 && p.ctx.Err() != nil {
		return errTimeout
	}
	return nil
}

// A candidate is a matching document.
type candidate struct {
	score        float64
	at           uint32
	segment, doc int
}

// compare returns a negative number if c is worse than o. Of equal documents, the newer is better.
func (c candidate) compare(o candidate) int {
	return cmp.Or(cmp.Compare(c.score, o.score), cmp.Compare(c.at, o.at), cmp.Compare(c.segment, o.segment),
		cmp.Compare(c.doc, o.doc))
}

// best is a heap with the worst candidate on top.
type best []candidate

func (b best) Len() int           { return len(b) }
func (b best) Less(i, j int) bool { return b[i].compare(b[j]) < 0 }
func (b best) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *best) Push(x any)        { *b = append(*b, x.(candidate)) } //nolint:forcetypeassert // heap's
func (b *best) Pop() any          { panic("candidates are replaced, never removed") }

// A search is a running search.
type search struct {
	r        *Reader
	splitter words.Splitter
	most     int
	clauses  []clause
	average  float64 // words per document
	best     best
	found    *Result
	pace     *pace
}

// A clause is a part of a query with its terms.
type clause struct {
	part
	rows    [][]words.Word
	matches [][]match // by segment: the matches of each row
	idf     float64
}

// A match has the terms of a row that a segment contains: for each position, the terms that match it.
type match struct {
	places    [][]entry
	truncated bool // further terms have the prefix
}

// maxPrefixTerms limits the terms that a single letter matches.
const maxPrefixTerms = 2000

// prepare looks up all terms.
func (s *search) prepare(q *Query) error {
	if s.pace.ctx.Err() != nil {
		return errTimeout
	}
	more := false
	langs := q.langs(s.r.man.Langs)
	docs, tokens := int64(0), int64(0)
	for _, seg := range s.r.segments {
		docs += int64(seg.info.Docs)
		tokens += seg.info.Tokens
	}
	s.average = max(1, float64(tokens)/float64(max(docs, 1)))
	for _, p := range q.parts {
		a := clause{part: p}
		if p.text != "" {
			a.rows = p.rows(&s.splitter, langs)
		} else {
			for _, term := range p.filter {
				a.rows = append(a.rows, []words.Word{{Term: term}})
			}
		}
		df := 0
		for _, seg := range s.r.segments {
			var all []match
			for _, row := range a.rows {
				m, least, err := seg.match(s.pace, row)
				if err != nil {
					return err
				}
				more = more || m.truncated
				if df += least; least > 0 {
					all = append(all, m)
				}
			}
			a.matches = append(a.matches, all)
		}
		df = min(df, int(docs))
		a.idf = math.Log(1 + (float64(docs)-float64(df)+0.5)/(float64(df)+0.5))
		s.clauses = append(s.clauses, a)
	}
	if more {
		s.markIncomplete(
			fmt.Sprintf("a single letter matches too many words: the search is limited to the first %d "+
				"in each part of the index", maxPrefixTerms),
		)
	}
	return nil
}

// match looks up the terms of a row, and returns an upper bound for the number of matching documents.
func (s *segment) match(pace *pace, row []words.Word) (m match, least int, err error) {
	least = s.info.Docs
	for _, w := range row {
		var some []entry
		df := 0
		over := pace.step()
		if over != nil {
			return m, 0, over
		}
		err := s.each(w.Term, func(e entry) bool {
			begins := w.Prefix && strings.HasPrefix(e.term, w.Term)
			if m.truncated = begins && len(some) == maxPrefixTerms; m.truncated {
				return false
			}
			if e.term == w.Term || begins {
				some = append(some, e)
				df += e.df
			}
			over = pace.step()
			return begins && over == nil
		})
		if err = cmp.Or(err, over); err != nil || len(some) == 0 {
			return m, 0, err
		}
		least = min(least, df)
		m.places = append(m.places, some)
	}
	return m, least, nil
}

// Constants of BM25, and the factor for terms in the head of a document.
const (
	k1, b, headBoost = 1.2, 0.75, 2.0
)

// searchSegment searches a segment.
func (s *search) searchSegment(nth int) error {
	seg := s.r.segments[nth]
	var must, not []iterator
	var weigh []float64 // weights of must; 0 for filters
	for i := range s.clauses {
		a := &s.clauses[i]
		it := seg.iterator(s.pace, a.matches[nth])
		switch {
		case a.not && it != nil:
			not = append(not, it)
		case a.not:
		case it == nil:
			return nil
		default:
			must = append(must, it)
			w := a.idf
			if a.text == "" {
				w = 0
			}
			weigh = append(weigh, w)
		}
	}
	for doc := 0; ; doc++ {
		var err error
		if doc, err = intersect(s.pace, must, doc); err != nil || doc == ended {
			return err
		}
		if seg.deleted.has(doc) {
			continue
		}
		out := false
		for _, it := range not {
			if err := it.next(doc); err != nil {
				return err
			}
			out = out || it.doc() == doc
		}
		if out {
			continue
		}
		at, length, err := seg.column(doc)
		if err != nil {
			return err
		}
		c := candidate{at: at, segment: nth, doc: doc}
		norm := k1 * (1 - b + b*lengthOf(length)/s.average)
		for i, it := range must {
			tf := float64(it.tf())
			score := weigh[i] * tf * (k1 + 1) / (tf + norm)
			if it.head() {
				score *= headBoost
			}
			c.score += score
		}
		s.found.Total++
		switch {
		case len(s.best) < s.most:
			heap.Push(&s.best, c)
		case s.best[0].compare(c) < 0:
			s.best[0] = c
			heap.Fix(&s.best, 0)
		}
	}
}

// An iterator iterates over documents in order.
type iterator interface {
	next(target int) error // advances to the first document from target on
	doc() int
	tf() int
	head() bool
	positions() ([]uint32, error)
}

// iterator returns an iterator over the documents that match one of several rows; nil if there are none.
func (s *segment) iterator(pace *pace, all []match) iterator {
	var some []iterator
	for _, m := range all {
		var row []iterator
		for _, entries := range m.places {
			var one []iterator
			for _, e := range entries {
				p := s.postings(e)
				p.pace = pace
				if len(entries) > fewEntries {
					p.list.most, p.pos.most = smallBuffer, smallBuffer
				}
				one = append(one, p)
			}
			row = append(row, anyOf(one))
		}
		if len(row) == 1 {
			some = append(some, row[0])
		} else {
			some = append(some, &phrase{row: row, cur: -1, pace: pace})
		}
	}
	if len(some) == 0 {
		return nil
	}
	return anyOf(some)
}

func anyOf(some []iterator) iterator {
	if len(some) == 1 {
		return some[0]
	}
	return &union{some: some, cur: -1}
}

// A union iterates over the documents of several iterators.
type union struct {
	some []iterator
	cur  int
	at   []uint32
}

func (u *union) doc() int { return u.cur }

func (u *union) next(target int) error {
	if u.cur >= target {
		return nil
	}
	u.cur = ended
	for _, it := range u.some {
		if err := it.next(target); err != nil {
			return err
		}
		u.cur = min(u.cur, it.doc())
	}
	return nil
}

func (u *union) tf() (n int) {
	for _, it := range u.some {
		if it.doc() == u.cur {
			n += it.tf()
		}
	}
	return n
}

func (u *union) head() bool {
	return slices.ContainsFunc(u.some, func(it iterator) bool { return it.doc() == u.cur && it.head() })
}

func (u *union) positions() ([]uint32, error) {
	u.at = u.at[:0]
	for _, it := range u.some {
		if it.doc() == u.cur {
			at, err := it.positions()
			if err != nil {
				return nil, err
			}
			u.at = append(u.at, at...)
		}
	}
	slices.Sort(u.at)
	return u.at, nil
}

// A phrase iterates over documents that contain consecutive terms.
type phrase struct {
	row  []iterator
	cur  int
	at   []uint32
	pace *pace
}

func (p *phrase) doc() int { return p.cur }
func (p *phrase) tf() int  { return len(p.at) }

func (p *phrase) head() bool {
	return !slices.ContainsFunc(p.row, func(it iterator) bool { return !it.head() })
}
func (p *phrase) positions() ([]uint32, error) { return p.at, nil }

func (p *phrase) next(target int) error {
	for p.cur < target {
		doc, err := intersect(p.pace, p.row, target)
		if err != nil {
			return err
		}
		if doc == ended {
			p.cur = ended
			return nil
		}
		if err := p.align(); err != nil {
			return err
		}
		if target = doc + 1; len(p.at) > 0 {
			p.cur = doc
			return nil
		}
	}
	return nil
}

// intersect advances iterators to the first document from doc on that all of them have.
func intersect(pace *pace, all []iterator, doc int) (int, error) {
	for i := 0; i < len(all); i++ {
		if err := pace.step(); err != nil {
			return 0, err
		}
		if err := all[i].next(doc); err != nil {
			return 0, err
		}
		if at := all[i].doc(); at > doc {
			if doc = at; doc == ended {
				break
			}
			i = -1
		}
	}
	return doc, nil
}

// align advances to a document with consecutive terms.
func (p *phrase) align() error {
	p.at = p.at[:0]
	for i, it := range p.row {
		at, err := it.positions()
		if err != nil {
			return err
		}
		if i == 0 {
			p.at = append(p.at, at...)
			continue
		}
		keep, k := p.at[:0], 0
		for _, begin := range p.at {
			for k < len(at) && at[k] < begin+uint32(i) { //nolint:gosec // it counts
				k++
			}
			if k < len(at) && at[k] == begin+uint32(i) { //nolint:gosec // it counts
				keep = append(keep, begin)
			}
		}
		p.at = keep
	}
	return nil
}
