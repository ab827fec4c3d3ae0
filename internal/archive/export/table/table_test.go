package table

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
)

func TestContract(t *testing.T) {
	for _, form := range []Format{JSONL, CSV} {
		t.Run(string(form), func(t *testing.T) {
			exporttest.Run(t, func(t testing.TB, to *target.Folder) (export.Exporter, error) {
				return New(t.Context(), to, form)
			})
		})
	}
}

func table(t *testing.T, form Format, visits ...exporttest.Visit) string {
	t.Helper()
	dir := t.TempDir()
	_, err := export.Run(t.Context(), export.Config{Crawl: exporttest.Crawl(t, visits...).Dir, Dir: dir},
		func(to *target.Folder) (export.Exporter, error) { return New(t.Context(), to, form) })
	if err != nil {
		t.Fatal(err)
	}
	return exporttest.Tree(t, dir)["pages."+string(form)]
}

var visits = []exporttest.Visit{
	{URL: "http://a.test/", Body: `<title>=HYPERLINK("http://evil.test")</title><h1>@SUM(1)</h1><a href=x>x</a><link rel=canonical href=/c>`},
	{URL: "http://a.test/moved", Status: 301, Header: "Location: x\r\n"},
	{URL: "http://a.test/gone", Status: 404, Body: "<title>a \"quoted\", long\none"},
}

func TestCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(table(t, CSV, visits...))).ReadAll()
	if err != nil || len(rows) != 4 || len(rows[0]) != len(columns()) {
		t.Fatalf("%v, %q", err, rows)
	}
	home, gone, moved := rows[1], rows[2], rows[3]
	if home[6] != `'=HYPERLINK("http://evil.test")` || home[7] != "'@SUM(1)" || home[9] != "http://a.test/c" ||
		home[12] != "2" {
		t.Errorf("%q", home)
	}
	if gone[1] != "404" || gone[6] != `a "quoted", long one` {
		t.Errorf("%q", gone)
	}
	if moved[13] != "http://a.test/x" || moved[1] != "301" {
		t.Errorf("%q", moved)
	}
	for n, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
				t.Errorf("row %d has %q", n, cell)
			}
		}
	}
}

func TestJSONL(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(table(t, JSONL, visits...), "\n"), "\n")
	var row row.Row
	if err := json.Unmarshal([]byte(lines[0]), &row); err != nil || len(lines) != 3 {
		t.Fatal(err, lines)
	}
	if row.URL != "http://a.test/" || row.Title != `=HYPERLINK("http://evil.test")` || row.Links != 2 ||
		row.Bytes != len(visits[0].Body) ||
		!strings.HasPrefix(row.Digest, "sha1:") || row.Time.Format("15:04:05") != "10:00:00" {
		t.Errorf("%+v", row)
	}
	if strings.Contains(lines[2], "title") || !strings.Contains(lines[2], `"redirect":"http://a.test/x"`) {
		t.Error(lines[2])
	}
}

// A table has the rows of pages.jsonl, which has no robots.txt files.
func TestRulesAreNoPage(t *testing.T) {
	more := append([]exporttest.Visit{{URL: "http://a.test/robots.txt", Body: "User-agent: *"},
		{URL: "http://a.test/docs/robots.txt", Body: "a page"}}, visits...)
	for _, form := range []Format{CSV, JSONL} {
		text := table(t, form, more...)
		if strings.Contains(text, "http://a.test/robots.txt") || !strings.Contains(text, "http://a.test/docs/robots.txt") {
			t.Errorf("%s has\n%s", form, text)
		}
	}
}
