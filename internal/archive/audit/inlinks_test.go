package audit

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/state/store/recordtest"
)

// TestPages lists all URLs with a response, each with the links of other pages to it.
func TestPages(t *testing.T) {
	tables, summary := audited(t, recordtest.Write(t, "gzip", slices.Values([]*page.Record{
		visit(1, "", http.StatusOK, a("one"), a(""), a("gone"), a("moved"), page.Link{URL: site + "one", Kind: page.Image}),
		with(visit(2, "one", http.StatusOK, a(""), page.Link{URL: site + "listed", Kind: page.Listed}),
			func(r *page.Record) {
				r.From, r.Page.Variants = site, []page.Variant{{Lang: "de", URL: site + "de"}, {Lang: "fr", URL: site + "fr"}}
				r.Page.Robots.Meta = "noindex"
			}),
		visit(3, "gone", http.StatusNotFound), redirect(4, "moved", "one"), visit(5, "listed", http.StatusOK),
	})).Dir)
	all, err := csv.NewReader(strings.NewReader(strings.Join(tables["pages"], "\n"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := Tables[allPages].Columns
	if columns[inlinksColumn] != "inlinks" {
		t.Fatalf("column %d is %s", inlinksColumn, columns[inlinksColumn])
	}
	cell := func(row []string, name string) string { return row[slices.Index(columns, name)] }
	var got []string
	for _, row := range all {
		got = append(got, strings.Join([]string{cell(row, "url"), cell(row, "status"), cell(row, "inlinks")}, " "))
	}
	want := []string{"/ 200 1", "/gone 404 1", "/listed 200 0", "/moved 302 1", "/one 200 3"}
	if !slices.Equal(got, want) {
		t.Errorf("pages %q, want %q", got, want)
	}
	one := all[len(all)-1]
	if cell(one, "hreflang") != "de /de fr /fr" || cell(one, "robots") != "noindex" || cell(one, "from") != "/" ||
		cell(one, "total_ms") != "10" {
		t.Errorf("%q", one)
	}
	if n := summary.Tables[allPages].Problems["status 200"]; n != 3 {
		t.Errorf("%d URLs with status 200", n)
	}
}
