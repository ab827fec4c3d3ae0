package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"kumo/internal/batch/local"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
)

// batchCrawled returns a storage location with two days of a collection of hostile pages, and an unfinished one.
func batchCrawled(t *testing.T) (place.Place, string) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tame := strings.ReplaceAll(hostile, "<", "&lt;")
		w.Header().Set("X-Hostile", `"><script>alert('field')</script>`)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/gone":
			http.NotFound(w, r)
		case "/de":
			_, _ = io.WriteString(w, "<title>Zug</title><p>Am Morgen fuhr der Zug eine halbe Stunde zu spät ab, weil in der "+
				"Nacht ein Baum auf die Strecke gefallen war.")
		default:
			_, _ = io.WriteString(w, "<title>"+tame+"</title><article><h1>"+tame+`</h1><p>`+strings.Repeat("The old library of "+
				"the town "+tame+
				" opens at nine in the morning and closes late in the evening. ", 5)+`</p></article><a href="`+inURL+
				`">one</a> <a href=/gone>g</a> <a href=/de>d</a>`)
		}
	}))
	t.Cleanup(site.Close)
	p, err := file.Open(filepath.Join(t.TempDir(), "news"), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	c := collection.New()
	c.Code, c.Directory, c.Seeds, c.Interval = "en", "crawler_en", []string{site.URL + "/"}, 0
	c.Language, c.Recrawl = collection.Language{Code: "en"}, []string{"1s"}
	text := func(resp *page.Response, pg *page.Page) (*page.MainText, error) {
		x, err := maintext.Extract(parse.UTF8(resp.Body, pg.Charset), resp.URL)
		return &page.MainText{Headline: x.Headline, Text: x.Text}, err
	}
	for _, date := range []string{"2026-11-21", "2098-01-01"} {
		run := &batch.Pipeline{Deps: batch.Deps{Place: p, Text: text}, Collections: []*collection.Collection{c}, Date: date,
			Reducers: 1,
			Runner:   local.New(local.Config{Place: p, Temp: filepath.Join(t.TempDir(), "temp")}),
			Fetching: batch.Fetching{Agent: "kumo", UserAgent: "kumo", AllowPrivate: true, Timeout: 5 * time.Second}}
		if err := run.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	state, err := place.ReadFile(t.Context(), p, "crawler_en/state/2026-11-21.json")
	if err == nil {
		begun := strings.NewReplacer("2026-11-21", "2098-01-02", `"job": ""`, `"job": "crawl"`).Replace(string(state))
		err = place.WriteFile(t.Context(), p, "crawler_en/state/2098-01-02.json", []byte(begun))
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, site.URL
}

// Pages and answers about batch crawls are as described for any request, and contain no markup of crawled pages.
func TestBatches(t *testing.T) {
	t.Parallel()
	p, site := batchCrawled(t)
	s := New(Config{Batches: []Batch{{Name: "data/news", Place: p}, {Name: "other/news", Place: p}},
		Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	b := &bed{ui: s, Server: httptest.NewServer(s)}
	t.Cleanup(b.Close)
	c, asked, page := newChecker(t), map[string]int{}, url.QueryEscape(site+"/")
	for _, e := range (&batchSet{}).endpoints() {
		for _, q := range []string{"", "?limit=1", "?limit=0", "?after=2098-01-01/crawler_en", "?after=crawler_en",
			"?after=x", "?collection=en", "?collection=none",
			"?find=LIBRARY", "?find=nowhere", "?of=other", "?of=x", "?cursor=3", "?cursor=0", "?cursor=x", "?cursor=99999999999",
			"?url=" + url.QueryEscape(site+"/"),
			"?words=LIBRARY+town", "?words=nowhere", "?words=library&limit=1&cursor=2098-01-01/crawler_en",
			"?words=library&cursor=2026-11-21/crawler_en/7", "?words=a&cursor=x", "?words=" + strings.Repeat("a+", 20),
			"?words=library&day=2026-11&collection=en", "?words=x&day=2026-1", "?words=library&collection=none",
			"?words=Zug&of=other", "?as=comments&url=" + page, "?as=text&url=" + page, "?as=xml&url=" + url.QueryEscape(site+"/de"),
			"?as=markdown&bytes=20&offset=7&url=" + page, "?as=headers&url=" + url.QueryEscape(site+"/gone"),
			"?as=markdown&url=" + url.QueryEscape(site+"/gone"), "?as=html&url=" + page, "?bytes=0&url=" + page,
			"?offset=99999&url=" + page,
			"?url=" + url.QueryEscape(site+inURL), "?url=" + url.QueryEscape(site+"/gone"), "?url=" +
				url.QueryEscape(site+"/never"), "?url=nothing", "?url="} {
			for _, at := range []string{"news en 2026-11-21", "news crawler_en last", "news-2 en 2098-01-01",
				"news en 2026-11-20", "news de last", "none en last"} {
				parts := strings.Fields(at)
				path := strings.NewReplacer("{batch}", parts[0], "{collection}", parts[1], "{day}", parts[2]).Replace(e.path)
				resp, text := b.ask(t, http.MethodGet, "/api/v1"+path+q, nil)
				if err := c.check("/api/v1"+e.path, resp.StatusCode, resp.Header.Get("Content-Type"), []byte(text)); err != nil ||
					resp.StatusCode >= 500 {
					t.Errorf("%s%s: %d: %v\n%.300s", path, q, resp.StatusCode, err, text)
				}
				if resp.StatusCode == http.StatusOK {
					asked[e.name]++
				}
			}
		}
		if asked[e.name] == 0 {
			t.Errorf("%s was never answered", e.name)
		}
	}
	var days dayList
	_, text := b.ask(t, http.MethodGet, "/api/v1/batches/news/days", nil)
	if err := json.Unmarshal([]byte(text), &days); err != nil || len(days.Days) != 3 || days.Days[0].Done ||
		days.Days[0].SoFar != 4 ||
		days.Days[2].Pages != 2 || days.Days[2].Apart != 1 || days.Days[1].Unchanged != 3 {
		t.Errorf("%v\n%s", err, text)
	}
	var r batchRecord
	_, text = b.ask(t, http.MethodGet, "/api/v1/batches/news/collections/en/days/2098-01-01/record?url="+
		url.QueryEscape(site+"/"), nil)
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Day != "2026-11-21" ||
		!strings.HasPrefix(r.Became, "unchanged since") ||
		!strings.Contains(r.Text, "The old library") || !strings.HasPrefix(r.XML, "<page><url>") ||
		!strings.Contains(r.Head, "X-Hostile") {
		t.Errorf("%v\n%s", err, text)
	}

	foundByWords(t, b, site)
	readOfDays(t, b, site)

	const at = "/batches/news/collections/en"
	of := func(path string) string { return at + "/days/2026-11-21/page?url=" + url.QueryEscape(site+path) }
	for path, want := range map[string]string{"/": "", "/crawls": `<a href="/batches/news-2">`,
		"/batches/news": ">2 pages</a>", "/batches/news?before=2098-01-01": ">2026-11-21",
		"/batches/news?after=zz": "No collections", at: "Pages, total from 2026-11-21 to 2098-01-01: at most 2, " +
			"finally 2",
		at + "?after=2098-01-01/crawler_en":                      "2026-11-21",
		at + "/days/2026-11-21":                                  `<span class="hidden">U+202E</span>`,
		at + "/days/2026-11-21?of=other":                         "/de</bdi>",
		at + "/days/2026-11-21?find=library":                     "/batches/news/collections/crawler_en/days/2026-11-21/page?url=",
		at + "/days/2026-11-21?find=" + url.QueryEscape(hostile): "No pages",
		at + "/days/2026-11-21?limit=1":                          "Next pages",
		at + "/days/2098-01-02":                                  "The day is not done",
		of("/"):                                                  "&lt;script&gt;alert(&#39;title&#39;)&lt;/script&gt;",
		of("/") + "&show=xml":                                    "&lt;page&gt;", of("/") +
			"&show=headers": "&lt;script&gt;alert(&#39;field&#39;)",
		of(inURL): "library", of("/gone"): "status 404", of("/de"): "stored separately"} {
		resp, text := b.ask(t, http.MethodGet, path, nil)
		if !strings.Contains(text, want) || resp.StatusCode >= 400 {
			t.Errorf("%s: %d, no %s in\n%s", path, resp.StatusCode, want, text)
		}
		wantTame(t, path, resp, text)
	}
	for _, path := range []string{"/batches/none", "/batches/news/collections/de", at + "/days/2026-11-20", at + "/days/x",
		of("/never"), of("") + "%3Cscript%3E", at + "/days/last?cursor=7"} {
		resp, text := b.ask(t, http.MethodGet, path, nil)
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest && path != at+
			"/days/last?cursor=7" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		wantTame(t, path, resp, text)
	}
}

// A list of days continues, one at a time, until each was listed once.
func TestListsOfDaysGoOn(t *testing.T) {
	t.Parallel()
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"4 crawler_de", "4 crawler_en", "3 crawler_en", "2 crawler_de", "1 crawler_de", "1 crawler_en"}
	for _, day := range want {
		date, dir, _ := strings.Cut(day, " ")
		date = "2026-11-0" + date
		if err := place.WriteFile(t.Context(), p, dir+"/state/"+date+".json",
			fmt.Appendf(nil, `{"version":1,"collection":%q,"date":%q}`, dir[len("crawler_"):], date)); err != nil {
			t.Fatal(err)
		}
	}
	s := New(Config{Batches: []Batch{{Name: "news", Place: p}}, Log: quiet()})
	t.Cleanup(s.Close)
	b := &bed{ui: s, Server: httptest.NewServer(s)}
	t.Cleanup(b.Close)
	for _, of := range []string{"", "crawler_de", "crawler_en"} {
		for limit := 1; limit < 5; limit++ {
			got, after := []string(nil), ""
			for n := 0; n == 0 || after != "" && n < 10; n++ {
				var x dayList
				resp, text := b.ask(t, http.MethodGet, fmt.Sprintf(
					"/api/v1/batches/news/days?collection=%s&limit=%d&after=%s", of, limit, after), nil)
				if err := json.Unmarshal([]byte(text), &x); err != nil || resp.StatusCode != http.StatusOK ||
					len(x.Days) > limit {
					t.Fatalf("%v: %s", err, text)
				}
				for _, d := range x.Days {
					got = append(got, d.Date[9:]+" "+d.Directory)
				}
				after = x.Next
			}
			whole := slices.DeleteFunc(slices.Clone(want), func(day string) bool { return !strings.HasSuffix(day, of) })
			if !slices.Equal(got, whole) {
				t.Errorf("of %q by %d: %q, want %q", of, limit, got, whole)
			}
		}
	}
}

// foundByWords searches records of days, completely and in parts.
func foundByWords(t *testing.T, b *bed, site string) {
	t.Helper()
	search := func(q string) (x recordsFound) {
		_, text := b.ask(t, http.MethodGet, "/api/v1/batches/news/search?"+q, nil)
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatalf("%s: %v\n%s", q, err, text)
		}
		return x
	}
	x := search("words=LIBRARY+town")
	if len(x.Hits) != 2 || x.Hits[0].Day != "2026-11-21" || x.Hits[0].Collection != "en" || x.Days != 3 || x.Next != "" ||
		!strings.Contains(x.Hits[0].Snippet, "old library") {
		t.Errorf("%+v", x)
	}
	var urls []string
	for cursor, n := "", 0; n == 0 || cursor != ""; n++ {
		part := search("words=library&limit=1&cursor=" + url.QueryEscape(cursor))
		for i := range part.Hits {
			urls = append(urls, part.Hits[i].URL)
		}
		if cursor = part.Next; n > 9 {
			t.Fatalf("there is no end: %q", cursor)
		}
	}
	if len(urls) != 2 || urls[0] != x.Hits[0].URL || urls[1] != x.Hits[1].URL {
		t.Errorf("in parts %q", urls)
	}
	for q, want := range map[string]int{"words=library+nowhere": 0, "words=Zug": 0, "words=Zug&of=other": 1,
		"words=library&day=2098": 0, "words=library&day=2026-11": 2, "words=library&collection=en": 2, "": 2} {
		if x := search(q); len(x.Hits) != want || x.Cut != "" {
			t.Errorf("%s: %+v", q, x)
		}
	}
	// a cursor beyond the end of a day continues with the next day
	if x := search("words=library&collection=en&cursor=2098-01-01/crawler_de/9999999"); len(x.Hits) != 2 {
		t.Errorf("behind a day that has gone: %+v", x)
	}
	if x := search("words=" + url.QueryEscape(site+"/de") + "&of=other"); len(x.Hits) != 1 || x.Hits[0].Snippet != "" {
		t.Errorf("by its URL: %+v", x)
	}
}

// readOfDays reads a page in each format, on the day that has it and on one on which it was unchanged.
func readOfDays(t *testing.T, b *bed, site string) {
	t.Helper()
	const days = "/api/v1/batches/news/collections/en/days/"
	for _, date := range []string{"2026-11-21", "2098-01-01"} {
		for as, want := range map[string]string{"text": "The old library", "markdown": "The old library of the town",
			"xml": "<page><url>", "headers": "X-Hostile: "} {
			var p batchPart
			_, text := b.ask(t, http.MethodGet, days+date+"/page?as="+as+"&url="+url.QueryEscape(site+"/"), nil)
			if err := json.Unmarshal([]byte(text), &p); err != nil || !strings.Contains(p.Text, want) || p.As != as ||
				p.Day != "2026-11-21" || p.All != len(p.Text) {
				t.Errorf("%s as %s: %v\n%s", date, as, err, text)
			}
			if as == "text" && strings.HasPrefix(p.Became, "unchanged since") != (date == "2098-01-01") {
				t.Errorf("%s: it became %s", date, p.Became)
			}
		}
	}
	var p batchPart
	_, text := b.ask(t, http.MethodGet, days+"2026-11-21/page?url="+url.QueryEscape(site+"/gone"), nil)
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.Text != "" || p.Status != http.StatusNotFound {
		t.Errorf("of what is gone: %v: %s", err, text)
	}
}

// The answer about a day is cached when the day ended a while ago, until a later day changes its files.
func TestWhatIsKeptOfADay(t *testing.T) {
	t.Parallel()
	p, _ := batchCrawled(t)
	b := newBatchSet(t.Context(), []Batch{{Name: "news", Place: p}}, false).all[0]
	const date = "2026-11-21"
	day := func() *dayAnswer {
		t.Helper()
		c, err := b.collection(t.Context(), "en")
		if err != nil {
			t.Fatal(err)
		}
		x, err := batchDay{b, dayOf{c, date}}.answer(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if err != nil || !x.Done {
			t.Fatalf("%+v, %v", x, err)
		}
		return x
	}
	if first := day(); first == day() {
		t.Error("a day is kept that has just ended")
	}
	name := "crawler_en/state/" + date + ".json"
	state, err := place.ReadFile(t.Context(), p, name)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(state, &fields); err != nil {
		t.Fatal(err)
	}
	fields["ended"] = time.Now().Add(-2 * settleTime)
	state, err = json.Marshal(fields)
	if err == nil {
		err = place.WriteFile(t.Context(), p, name, state)
	}
	if err != nil {
		t.Fatal(err)
	}
	had := day()
	if day() != had {
		t.Error("a day is not kept that has ended long ago")
	}
	b.listed = nil
	if err := place.WriteFile(t.Context(), p, "crawler_en/state/2098-01-03.json", state); err != nil {
		t.Fatal(err)
	}
	if day() == had {
		t.Error("a day is kept though a later one has begun")
	}
}
