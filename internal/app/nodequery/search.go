package nodequery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/vfs"
)

// A Search is a search in the full-text indexes of all nodes.
type Search struct {
	Text    string        `json:"text"`    // as fulltext.Parse reads it
	Hits    int           `json:"hits"`    // of each node, the best ones
	Timeout time.Duration `json:"timeout"` // at most maxSearch
}

// maxSearch limits the time of a node's search, since nodes answer queries within a few seconds.
const maxSearch = 3 * time.Second

// A Hit is a page that matches.
type Hit struct {
	URL     string           `json:"url"`
	Title   string           `json:"title,omitempty"`
	Status  int              `json:"status"`
	Time    time.Time        `json:"time"` // of the visit
	Type    string           `json:"type,omitempty"`
	Lang    string           `json:"lang,omitempty"`
	Score   float64          `json:"score"`
	Snippet []fulltext.Piece `json:"snippet,omitempty"`
}

// NewHit returns a hit of an index.
func NewHit(h *fulltext.Hit) Hit {
	return Hit{h.URL, h.Title, h.Status, h.Time, h.Type, h.Lang, h.Score, h.Snippet}
}

// searchReply is the answer of one node.
type searchReply struct {
	Hits    []Hit  `json:"hits"`
	Total   int64  `json:"total"` // matching pages
	Docs    int64  `json:"docs"`  // pages of the index
	Cut     string `json:"cut,omitempty"`
	NoIndex bool   `json:"no_index,omitempty"`
	Error   string `json:"error,omitempty"`
}

// maxReply limits an answer, in bytes of texts. A message has at most bus.MaxData, four times as many.
const maxReply = 1 << 20

// run searches a node's index.
func (s *Search) run(ctx context.Context, dir string) (a searchReply) {
	q, err := fulltext.Parse(s.Text)
	if err != nil {
		return searchReply{Error: err.Error()}
	}
	r, err := fulltext.OpenReader(vfs.OS, filepath.Join(dir, folder.IndexDir))
	switch {
	case errors.Is(err, fulltext.ErrNoIndex):
		return searchReply{NoIndex: true}
	case err != nil:
		return searchReply{Error: err.Error()}
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, min(s.Timeout, maxSearch))
	defer cancel()
	found, err := r.Search(ctx, q, 0, s.Hits)
	if err != nil {
		return searchReply{Error: err.Error()}
	}
	a.Docs, _ = r.Docs()
	a.Total, a.Cut = found.Total, found.Cut
	size := 0
	for i := range found.Hits {
		h := NewHit(&found.Hits[i])
		for _, p := range h.Snippet {
			size += len(p.Text)
		}
		if size += len(h.URL) + len(h.Title); size > maxReply {
			a.Cut = "the results are too long: some are missing"
			break
		}
		a.Hits = append(a.Hits, h)
	}
	return a
}

// Found is the merged result of all nodes.
type Found struct {
	Hits    []Hit    // best ones first; a URL that several nodes have visited is listed once, as last visited
	Total   int64    // matching pages; a URL may count once for each node that visited it
	Docs    int64    // indexed pages
	NoIndex []string // names of nodes without an index
	Missing []string // why the result is incomplete, one reason for each node
}

// Add adds the answer of a node; nil if it did not answer.
func (f *Found) Add(node string, answer []byte) {
	var a searchReply
	switch {
	case len(answer) == 0:
		f.Missing = append(f.Missing, "node "+node+" did not answer")
		return
	case json.Unmarshal(answer, &a) != nil:
		f.Missing = append(f.Missing, "node "+node+" gave an invalid answer: it may run another version of kumo")
		return
	}
	if a.NoIndex {
		f.NoIndex = append(f.NoIndex, node)
	}
	if why := cmp.Or(a.Error, a.Cut); why != "" {
		f.Missing = append(f.Missing, "node "+node+": "+why)
	}
	f.Hits, f.Total, f.Docs = append(f.Hits, a.Hits...), f.Total+a.Total, f.Docs+a.Docs
}

// Merge sorts and deduplicates the hits, and reduces them to n, from the from-th on. Scores of different nodes are
// comparable as far as words are about as frequent in each index.
func (f *Found) Merge(from, n int) {
	slices.SortFunc(f.Hits, func(a, b Hit) int { return b.Time.Compare(a.Time) })
	seen := make(map[string]bool, len(f.Hits))
	f.Hits = slices.DeleteFunc(f.Hits, func(h Hit) bool {
		again := seen[h.URL]
		seen[h.URL] = true
		return again
	})
	slices.SortStableFunc(f.Hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.URL, b.URL))
	})
	f.Hits = f.Hits[min(from, len(f.Hits)):]
	f.Hits = f.Hits[:min(n, len(f.Hits))]
	slices.Sort(f.Missing)
	slices.Sort(f.NoIndex)
}
