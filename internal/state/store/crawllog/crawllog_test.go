package crawllog

import (
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/state/store/storetest"
)

const digest = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func TestLines(t *testing.T) {
	const begin = "2026-11-21T03:12:14.168Z "
	const url = " https://example.org/page-00001/ L https://example.org/ "
	const took = " #000 20261121031214123+45 "
	const seed = " https://example.org/ "
	const answered = begin + "  200       4000" + url + "text/html" + took + digest + seed
	for _, c := range []struct {
		name   string
		change func(*page.Record)
		want   string
	}{
		{"plain", func(*page.Record) {}, answered + "-"},
		{"third try", func(r *page.Record) { r.Tries = 3 }, answered + "3t"},
		{"revisit", func(r *page.Record) { r.Tries, r.Revisit = 2, &page.Ref{} }, answered + "2t,duplicate:digest"},
		{"too long", func(r *page.Record) { r.Response.Truncated = page.Length }, answered + "lenTrunc"},
		{"too slow", func(r *page.Record) { r.Response.Truncated = page.Time }, answered + "timeTrunc"},
		{"cut off", func(r *page.Record) { r.Response.Truncated = page.Disconnect }, answered + "disconnectTrunc"},
		{"malformed", func(r *page.Record) { r.Response.Malformed = "bad chunk" }, answered + "malformed"},
		{"robots", func(r *page.Record) { r.Robots = true }, answered + "robots"},
		{"no status line", func(r *page.Record) { r.Response.Status, r.Response.Malformed = 0, "no status line" },
			begin + "   -3       4000" + url + "text/html" + took + digest + seed + "malformed"},
		{"malformed failure", func(r *page.Record) { r.Failure, r.Response.Malformed = page.Malformed, "no status line" },
			begin + "   -3       4000" + url + "text/html" + took + digest + seed + "malformed"},
		{"no address", func(r *page.Record) { r.Failure, r.Response, r.Page = page.DNS, nil, nil },
			begin + "   -1          0" + url + "-" + took + "-" + seed + "dns"},
		{"private", func(r *page.Record) { r.Failure, r.Response, r.Page = page.Private, nil, nil },
			begin + "-5002          0" + url + "-" + took + "-" + seed + "private"},
		{"a seed", func(r *page.Record) { r.Path, r.From = "", "" },
			begin + "  200       4000 https://example.org/page-00001/ - - text/html" + took + digest + seed + "-"},
		{"hostile", func(r *page.Record) { r.URL, r.Page.Type = "http://a/b c\nd", "text/ html" },
			begin + "  200       4000 http://a/b%20c%0Ad L https://example.org/ text/%20html" + took + digest + seed + "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := storetest.Record(1)
			rec.Digest = page.Digest{}
			c.change(rec)
			got := string(appendRecord(nil, rec))
			if got != c.want+"\n" {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
			if n := len(strings.Fields(got)); n != 12 {
				t.Errorf("%d fields", n)
			}
		})
	}
}

func TestEveryFailureHasACode(t *testing.T) {
	for _, f := range []page.Failure{page.DNS, page.Connect, page.Refused, page.TLS, page.Timeout, page.Reset,
		page.Malformed,
		page.Private, page.Proxy, page.Unreachable, page.Internal} {
		if _, ok := codes[f]; !ok {
			t.Errorf("%s has no code", f)
		}
	}
	if Code(page.None) != 0 || Code("new") != -5 {
		t.Errorf("None is %d, an unknown failure %d", Code(page.None), Code("new"))
	}
}

func BenchmarkAppend(b *testing.B) {
	rec := storetest.Record(1)
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line = appendRecord(line[:0], rec)
	}
}
