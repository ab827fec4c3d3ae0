package lookup

import (
	"context"
	"encoding/json"
	"path/filepath"

	"kumo/internal/archive/fulltext"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store/jsonl"
)

// indexDir is the folder of the full-text index in a crawl's.
const indexDir = "index"

// An IndexState is how far a crawl's full-text index is.
type IndexState struct {
	Docs int64   `json:"urls"` // that it has
	Part float64 `json:"part"` // of what was fetched, 0 to 1, by the length of its lines
	Fit  int64   `json:"fit"`  // that fit the query
}

// Index is how far the full-text index is; [fulltext.ErrNone] if there is none.
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
	if n = int(min(int64(n), fulltext.Deepest-from)); n < 1 {
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
	if next := from + int64(len(x.Hits)); len(x.Hits) == n && next < min(x.Total, fulltext.Deepest) {
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
