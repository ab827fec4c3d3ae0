package nodequery

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/vfs"
)

var day = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// indexed returns a node's part with an index of documents.
func indexed(t *testing.T, docs ...fulltext.Doc) *Part {
	t.Helper()
	p := &Part{Dir: t.TempDir()}
	x, err := fulltext.Open(vfs.OS, p.Dir+"/"+folder.IndexDir)
	if err == nil {
		err = x.Put(t.Context(), docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func doc(url, text string, hour int) fulltext.Doc {
	return fulltext.Doc{URL: url, Text: text, Title: url, Status: 200, Lang: "en", Type: "text/html",
		Time: day.Add(time.Duration(hour) * time.Hour)}
}

// TestSearch: two nodes have visited a page; one has no index, one has a damaged one, and one does not answer.
func TestSearch(t *testing.T) {
	a := indexed(t, doc("http://x.test/", "green tea and black tea", 0), doc("http://x.test/moved", "tea", 1))
	b := indexed(t, doc("http://x.test/moved", "tea of another day", 2), doc("http://y.test/", "coffee", 0))
	damaged := indexed(t, doc("http://z.test/", "tea", 0))
	files, err := filepath.Glob(damaged.Dir + "/" + folder.IndexDir + "/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("no index"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q := Query{Search: &Search{Text: "tea", Hits: 10, Timeout: time.Minute}}
	found := &Found{}
	for name, p := range map[string]*Part{"a": a, "b": b, "c": {Dir: t.TempDir()}, "d": damaged} {
		answer, err := p.Answer(t.Context(), q.Encode())
		if err != nil {
			t.Fatal(err)
		}
		found.Add(name, answer)
	}
	found.Add("e", nil)
	found.Add("f", []byte("{"))
	found.Merge(0, 10)
	if len(found.Hits) != 2 || found.Total != 3 || found.Docs != 4 || !slices.Equal(found.NoIndex, []string{"c"}) {
		t.Fatalf("%+v", found)
	}
	for _, h := range found.Hits {
		if h.URL == "http://x.test/moved" && !h.Time.Equal(day.Add(2*time.Hour)) {
			t.Errorf("the page that two nodes have is listed with its visit of %v", h.Time)
		}
	}
	if m := strings.Join(found.Missing, "\n"); len(found.Missing) != 3 || !strings.HasPrefix(m, "node d: ") ||
		!strings.Contains(m, "node e did not answer\nnode f gave an invalid answer") {
		t.Errorf("missing: %s", m)
	}
	best := found.Hits[1]
	if found.Merge(1, 1); len(found.Hits) != 1 || found.Hits[0].URL != best.URL {
		t.Errorf("after the first: %+v", found.Hits)
	}
	if found.Merge(5, 1); len(found.Hits) != 0 {
		t.Errorf("beyond the last: %+v", found.Hits)
	}
}

// TestAnswer: a count is passed on; other queries are errors.
func TestAnswer(t *testing.T) {
	p := &Part{Dir: t.TempDir(), CountBlocked: func(_ context.Context, rules []string) ([]byte, error) {
		return json.Marshal(rules)
	}}
	q := Query{Rules: []string{"x.test"}}
	if got, err := p.Answer(t.Context(), q.Encode()); err != nil || string(got) != `["x.test"]` {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{"", "{", "{}", `{"new":1}`} {
		if got, err := p.Answer(t.Context(), json.RawMessage(bad)); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
	q = Query{Search: &Search{Text: `status:x"`, Hits: 1}}
	if got, err := p.Answer(t.Context(), q.Encode()); err != nil || !strings.Contains(string(got), `"error"`) {
		t.Errorf("a wrong query: %s, %v", got, err)
	}
}

// TestLongAnswersAreCut: an answer fits into a message.
func TestLongAnswersAreCut(t *testing.T) {
	var docs []fulltext.Doc
	for i := range 40 {
		d := doc("http://x.test/"+strings.Repeat("a", i+1), "tea", 0)
		d.Title = strings.Repeat("long ", 10_000)
		docs = append(docs, d)
	}
	q := Query{Search: &Search{Text: "tea", Hits: 40, Timeout: time.Minute}}
	answer, err := indexed(t, docs...).Answer(t.Context(), q.Encode())
	if err != nil || len(answer) > 4<<20 {
		t.Fatalf("%d bytes, %v", len(answer), err)
	}
	var found Found
	if found.Add("a", answer); found.Total != 40 || len(found.Hits) >= 40 || len(found.Missing) != 1 {
		t.Errorf("%d of %d hits; %v", len(found.Hits), found.Total, found.Missing)
	}
}
