package inspect_test

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/inspect"
	"kumo/internal/batch/local"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/lab/synthweb"
)

const day1, day2 = "2026-11-21", "2026-11-22"

// crawled returns a storage location with a day of two collections that have the same pages, and a day that is not
// done. Each collection keeps its own pages.
func crawled(t *testing.T) place.Place {
	t.Helper()
	cfg := synthweb.Clean(7, 5, 40)
	cfg.MedianSize = 4 << 10
	cfg.Traits = map[synthweb.Trait]int{synthweb.Legacy: 500, synthweb.Gzip: 300}
	server, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	var all []*collection.Collection
	for _, code := range []string{"ja", "other"} {
		c := collection.New()
		c.Code, c.Directory, c.Seeds, c.Scope, c.Depth = code, "crawler_"+code, server.SeedURLs(), "any", 100
		c.Interval, c.Language = collection.Duration(time.Millisecond), collection.Language{Code: code, Share: 0.1}
		all = append(all, c)
	}
	text := func(resp *page.Response, pg *page.Page) (*page.MainText, error) {
		x, err := maintext.Extract(parse.UTF8(resp.Body, pg.Charset), resp.URL)
		return &page.MainText{Headline: x.Headline, Text: x.Text}, err
	}
	run := &batch.Pipeline{Deps: batch.Deps{Place: p, Text: text}, Collections: all, Date: day1, Reducers: 3,
		Runner: local.New(local.Config{Place: p, Temp: filepath.Join(t.TempDir(), "temp")}),
		Fetching: batch.Fetching{Agent: "kumo", UserAgent: "kumo", AllowPrivate: true, DNSServer: server.DNS(),
			Timeout: 5 * time.Second}}
	if err := run.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := place.ReadFile(t.Context(), p, "crawler_ja/state/"+day1+".json")
	if err != nil {
		t.Fatal(err)
	}
	begun := strings.NewReplacer(day1, day2, `"job": ""`, `"job": "crawl"`).Replace(string(state))
	if err := place.WriteFile(t.Context(), p, "crawler_ja/state/"+day2+".json", []byte(begun)); err != nil {
		t.Fatal(err)
	}
	return p
}

// list returns the URLs that a query lists.
func list(t *testing.T, c *inspect.Collection, q inspect.Query) (urls []string) {
	t.Helper()
	for e, err := range c.Records(t.Context(), day1, q) {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, e.URL)
	}
	return urls
}

func TestAPlaceTellsWhatItHolds(t *testing.T) {
	p := crawled(t)
	all, err := inspect.Collections(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Code != "ja" || all[1].Directory != "crawler_other" ||
		!slices.Equal(all[0].Dates, []string{day1, day2}) {
		t.Fatalf("%+v", all)
	}
	table, err := inspect.Stats(t.Context(), all, inspect.Span{})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Days) != 2 || len(table.Open) != 1 || table.Open[0].Date != day2 || table.All.Days != 1 {
		t.Errorf("%+v", table)
	}
	for i, c := range all {
		t.Run(c.Code, func(t *testing.T) { holds(t, c, table.Collections[i]) })
	}
	if table.All.Pages != table.Collections[0].Pages+table.Collections[1].Pages ||
		table.All.Sites > table.Collections[0].Sites+table.Collections[1].Sites {
		t.Errorf("%+v", table.All)
	}
	none, err := inspect.Stats(t.Context(), all, inspect.Span{Last: "2026-11-20"})
	if err != nil || none.All.Pages > 0 || none.All.Sites > 0 {
		t.Errorf("%+v, %v", none.All, err)
	}
}

// holds compares a collection's list with its counts and Documents.
func holds(t *testing.T, c *inspect.Collection, sum *inspect.Row) {
	urls, others := list(t, c, inspect.Query{Limit: -1}), list(t, c, inspect.Query{Limit: -1, Other: true})
	if len(urls) == 0 || int64(len(urls)) != sum.Pages || int64(len(others)) != sum.Apart {
		t.Errorf("%d and %d pages, of which %d and %d are counted", len(urls), len(others), sum.Pages, sum.Apart)
	}
	if !slices.IsSorted(urls) || slices.ContainsFunc(others, func(u string) bool { return slices.Contains(urls, u) }) {
		t.Error("pages are out of order, or in both")
	}
	if got := list(t, c, inspect.Query{Offset: 3, Limit: 4}); !slices.Equal(got, urls[3:7]) {
		t.Errorf("%q from the third on, of %q", got, urls)
	}
	bytes, charsets := int64(0), map[string]int64{}
	for _, url := range append(slices.Clone(urls), others...) {
		pg, err := c.Page(t.Context(), day1, url)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Document(t.Context(), day1, url)
		if err != nil {
			t.Fatal(err)
		}
		if pg.Record.URL != url || pg.Record.Content != d.Text || pg.Record.Digest != d.Digest ||
			pg.Other != slices.Contains(others, url) {
			t.Errorf("%+v is not %+v", pg.Record, d)
		}
		charsets[d.Charset]++
		if !pg.Other {
			bytes += int64(len(d.Raw) - d.HeadLen)
		}
	}
	if bytes != sum.Bytes || !maps.Equal(charsets, sum.Charsets) {
		t.Errorf("%d bytes, charsets %v; counted are %d, %v", bytes, charsets, sum.Bytes, sum.Charsets)
	}
	found := list(t, c, inspect.Query{Limit: -1, Find: strings.ToUpper(urls[5][7:])})
	if !slices.Contains(found, urls[5]) || len(found) == len(urls) {
		t.Errorf("found %q", found)
	}
	for _, not := range []string{"http://none.test/", urls[0] + "~"} {
		if _, err := c.Page(t.Context(), day1, not); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := c.Document(t.Context(), day1, not); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

func TestWhatNobodySeesIsShown(t *testing.T) {
	for in, want := range map[string]string{
		"سلام\u200cعلیکم क्\u200dष": "سلام\u200cعلیکم क्\u200dष",
		"a\x1b[31mb\u009b\u202ec":   `a\u{1b}[31mb\u{9b}\u{202e}c`,
		"\xff\u200b\ufeff\r":        "\uFFFD" + `\u{200b}\u{feff}\u{d}`,
	} {
		if got := inspect.Visible(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := inspect.Visible("a\nb") + inspect.VisibleLine("a\nb"); got != "a\nba\\u{a}b" {
		t.Errorf("%q", got)
	}
}

func TestWhatIsDamagedDoesNotHideTheRest(t *testing.T) {
	p := crawled(t)
	cut := func(name string) {
		t.Helper()
		data, err := place.ReadFile(t.Context(), p, name)
		if err == nil {
			err = place.WriteFile(t.Context(), p, name, data[:len(data)*2/3])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, err error, name string) {
		t.Helper()
		if !errors.Is(err, batch.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	cut("crawler_ja/state/" + day2 + ".json")
	all, err := inspect.Collections(t.Context(), p)
	if err != nil || len(all) != 2 || all[0].Code != "ja" {
		t.Fatalf("%d collections: %v", len(all), err)
	}
	_, err = all[0].Day(t.Context(), day2)
	is("the day", err, day2+".json")
	cut("crawler_other/xml/" + day1 + "/counts.json")
	table, err := inspect.Stats(t.Context(), all, inspect.Span{})
	if err != nil || len(table.Damaged) != 2 || len(table.Days) != 1 || table.All.Pages == 0 {
		t.Errorf("%d days are counted, %d are damaged: %v", len(table.Days), len(table.Damaged), err)
	}
	cut("crawler_ja/xml/" + day1 + "/index.jsonl")
	for _, err = range all[0].Records(t.Context(), day1, inspect.Query{Limit: -1}) {
	}
	is("its pages", err, "index.jsonl")
	cut("crawler_ja/state/" + day1 + ".json")
	all, err = inspect.Collections(t.Context(), p)
	if len(all) != 1 || all[0].Code != "other" {
		t.Errorf("%d collections", len(all))
	}
	is("a collection without a state", err, "crawler_ja/state/")
}

// The Documents of a day that is not merged are in the order of fetching.
func TestADocumentOfADayThatIsNotMerged(t *testing.T) {
	p := crawled(t)
	all, err := inspect.Collections(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	urls := list(t, all[0], inspect.Query{Limit: 1})
	names, err := batch.DayFiles(t.Context(), p, &collection.Collection{Directory: "crawler_ja"}, "doc", day1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		to := strings.Replace(name, day1+"/", day2+"/round-01/", 1)
		if err := p.Rename(t.Context(), name, to); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := all[0].Document(t.Context(), day2, urls[0]); err != nil || d.URL != urls[0] || d.Status != 200 {
		t.Errorf("%+v: %v", d, err)
	}
	if _, err := all[0].Document(t.Context(), day2, "http://nowhere.test/"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody asked for: %v", err)
	}
}

// Partial lists contain each entry once, from any cursor, and a search finds its matches in each part.
func TestListsGoOnByCursors(t *testing.T) {
	p := crawled(t)
	all, err := inspect.Collections(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	c := all[1]
	for _, q := range []inspect.Query{{}, {Other: true}, {Find: "A"}, {Find: "nothing has this text"}} {
		q.Limit = -1
		want := list(t, c, q)
		for _, n := range []int{1, 3, 1000} {
			q.Limit = n
			var got []string
			for cursor, more := int64(0), true; more; {
				l, err := c.List(t.Context(), day1, q, cursor)
				if err != nil || len(l.Records) > n {
					t.Fatalf("%d records, %v", len(l.Records), err)
				}
				for _, e := range l.Records {
					got = append(got, e.URL)
				}
				cursor, more = l.Next, l.Next > 0
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: %d entries %d at a time, want %d", q, len(got), n, len(want))
			}
		}
	}
	for _, cursor := range []int64{1, 7, 1 << 40, math.MaxInt64 - 1} {
		if _, err := c.List(t.Context(), day1, inspect.Query{Limit: 1}, cursor); !errors.Is(err, inspect.ErrCursor) {
			t.Errorf("cursor %d: %v", cursor, err)
		}
	}
	if _, err := c.List(t.Context(), "2026-01-01", inspect.Query{Limit: 1}, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a day that is not there: %v", err)
	}
	b, err := all[0].Brief(t.Context(), day2)
	if err != nil || b.Done || b.SoFar == 0 || !strings.HasSuffix(b.State, ", crawl") {
		t.Errorf("a day that is under way: %+v, %v", b, err)
	}
	if b, err := c.Brief(t.Context(), day1); err != nil || !b.Done || b.Pages == 0 || b.State != "done" {
		t.Errorf("a day that is done: %+v, %v", b, err)
	}
	folders, err := c.Files(t.Context(), day1, 2)
	if err != nil || len(folders) < 4 || len(folders[0].Files) > 2 || folders[0].All == 0 || folders[0].Bytes == 0 {
		t.Errorf("%+v, %v", folders, err)
	}
}
