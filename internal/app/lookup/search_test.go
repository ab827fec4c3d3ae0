package lookup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"kumo/internal/app/lookup"
	"kumo/internal/base/vfs"
)

// A search ends at its limits and says so; further calls continue until all records were scanned once.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	const all = 2500
	for i := range all {
		fmt.Fprintf(&text,
			`{"url":"http://a.test/%d","status":200,"type":"text/html","title":"Page %[1]d","warc":"gone.warc.gz","offset":0}`+"\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	a := lookup.New(vfs.OS, dir, nil)
	records, steps := 0, 0
	for cursor := int64(lookup.Last); ; steps++ {
		x, err := a.Search(t.Context(), lookup.Query{Words: []string{"nowhere"}}, cursor, 10)
		if err != nil || len(x.Hits) > 0 || (x.Next == nil) != (x.Cut == "") || steps > 10 {
			t.Fatalf("step %d: %+v, %v", steps, x, err)
		}
		if records += x.Records; x.Next == nil {
			break
		}
		cursor = *x.Next
	}
	if records != all || steps == 0 {
		t.Errorf("%d records in %d steps", records, steps+1)
	}
	x, err := a.Search(t.Context(), lookup.Query{Words: []string{"PAGE", "/1234"}, Host: "A.test", HeadOnly: true},
		lookup.Last, 10)
	if err != nil || len(x.Hits) != 1 || x.Hits[0].URL != "http://a.test/1234" || x.Hits[0].In != "head" || x.Texts != 0 {
		t.Errorf("%+v, %v", x, err)
	}
	for _, host := range []string{"test", "b.test", ".test", "a.test.evil"} {
		x, err := a.Search(t.Context(), lookup.Query{Host: host}, lookup.Last, 1)
		if err != nil || (len(x.Hits) > 0) != (host == "test") {
			t.Errorf("%s: %+v, %v", host, x, err)
		}
	}
	for _, q := range []lookup.Query{{Words: strings.Fields(strings.Repeat("a ", 17))},
		{Words: []string{strings.Repeat("a", 1001)}}, {Filter: lookup.Filter{Status: "x"}}} {
		if q.Check() == nil {
			t.Errorf("%+v is taken", q)
		}
	}
	if _, err := a.Search(t.Context(), lookup.Query{Words: []string{"(\xff[", `\`}}, lookup.Last, 1); err != nil {
		t.Error(err)
	}
}

func FuzzPart(f *testing.F) {
	f.Add("äöü", 1, 3)
	f.Add("\xff\x80\x80\x80\x80", 2, 1)
	f.Fuzz(func(t *testing.T, text string, from, n int) {
		part, next := lookup.Part(text, from, n)
		if next > len(text) || len(part) > max(n, utf8.UTFMax)+utf8.UTFMax {
			t.Errorf("%q from %d, %d: %q, %d", text, from, n, part, next)
		}
		var all strings.Builder
		for at := 0; at < len(text); {
			var part string
			before := at
			if part, at = lookup.Part(text, at, n); at <= before {
				t.Fatalf("%q does not go on behind %d", text, before)
			}
			all.WriteString(part)
		}
		if all.String() != text {
			t.Errorf("%q in parts is %q", text, all.String())
		}
	})
}
