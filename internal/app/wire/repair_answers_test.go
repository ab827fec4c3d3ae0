package wire

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/policy"
)

// inChunks responds with chunks.
func inChunks(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for _, p := range parts {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

func taggedInChunks(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"v1"`)
	if r.Header.Get("If-None-Match") == `"v1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	inChunks("tagged, ", "and in chunks")(w, r)
}

// TestRepairOfChunksAndRecrawls: after a repair, chunked responses, 304s and duplicates are known by the digest of
// their body.
func TestRepairOfChunksAndRecrawls(t *testing.T) {
	t.Parallel()
	const text = "a text that several pages have, so long that it is worth a revisit record"
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":       html(`<a href=/one>1</a><a href=/two>2</a><a href=/plain>3</a><a href=/same>4</a><a href=/tagged>5</a>`),
		"a.test/one":    inChunks(text[:20], text[20:]),
		"a.test/two":    inChunks(text[:7], text[7:50], text[50:]),
		"a.test/plain":  html("without chunks"),
		"a.test/same":   html("without chunks"),
		"a.test/tagged": taggedInChunks,
	})
	j := s.job(t, "a.test/")
	const often = time.Microsecond // each run visits all pages again, once
	j.Crawl.Recrawl.Intervals = []policy.Interval{{Every: often, Min: often, Max: often}}
	for i := range 2 {
		again := *j
		if i == 0 { // nothing must be due during the run
			again.Crawl.Recrawl.Intervals = []policy.Interval{{Every: time.Hour, Min: time.Hour, Max: time.Hour}}
		}
		mustRun(t, &again)
	}
	wantVerified(t, j.Dir)
	p := &patient{job: j, files: contentsOf(t, j.Dir)}
	state := []string{"state/journal", "state/seen", "state/frontier", "state/digests"}
	for what, lost := range map[string][]string{"state": state, "pages": {"pages.jsonl"}, "log": {"crawl.log"},
		"indexes":         {".cdxj"},
		"state and pages": append([]string{"pages.jsonl"}, state...)} {
		t.Run(what, func(t *testing.T) {
			j := p.copied(t)
			p.lose(t, j.Dir, lost)
			r, err := testRepair(t, j, false)
			if err != nil {
				t.Fatal(err)
			}
			if robots := int64(1); r.Pages != 12 || r.Visits > robots {
				t.Errorf("%+v: 12 pages were there", r)
			}
			wantVerified(t, j.Dir)
			s.forget()
			mustRun(t, j)
			s.wantAsked(t, "a.test/", "a.test/one", "a.test/two", "a.test/plain", "a.test/same", "a.test/tagged")
			s.wantHead(t, "a.test/tagged", "If-None-Match", `"v1"`)
			wantRecrawls(t, j, map[string]string{"/": "unchanged 200", "/one": "unchanged 200", "/two": "unchanged 200",
				"/plain": "unchanged 200", "/same": "unchanged 200",
				"/tagged": "unchanged 304"})
			pages := lines(t, j.Dir, "pages.jsonl")
			for _, l := range pages[len(pages)-6:] {
				if l["revisit"] == nil {
					t.Errorf("%v was stored again", l["url"])
				}
			}
			wantRevisits(t, j)
		})
	}
}

// lose deletes the files whose names contain one of the parts.
func (p *patient) lose(t *testing.T, dir string, lost []string) {
	t.Helper()
	for name := range p.files {
		if slices.ContainsFunc(lost, func(l string) bool { return strings.Contains(name, l) }) {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
}
