package mcp_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/local"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/view/web/mcp"
	"kumo/internal/view/web/ui"
)

// batchCrawled returns a storage location with two days of a collection. On the second, nothing had changed.
func batchCrawled(t *testing.T, seed string) place.Place {
	t.Helper()
	p, err := file.Open(filepath.Join(t.TempDir(), "news"), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	c := collection.New()
	c.Code, c.Directory, c.Seeds, c.Interval = "en", "crawler_en", []string{seed + "/"}, 0
	c.Language, c.Recrawl = collection.Language{Code: "en"}, []string{"1s"}
	text := func(resp *page.Response, pg *page.Page) (*page.MainText, error) {
		x, err := maintext.Extract(parse.UTF8(resp.Body, pg.Charset), resp.URL)
		return &page.MainText{Headline: x.Headline, Text: x.Text}, err
	}
	for _, date := range []string{"2026-11-21", "2098-01-01"} {
		run := &batch.Pipeline{Deps: batch.Deps{Place: p, Text: text}, Collections: []*collection.Collection{c},
			Date: date, Reducers: 1,
			Runner:   local.New(local.Config{Place: p, Temp: filepath.Join(t.TempDir(), "temp")}),
			Fetching: batch.Fetching{Agent: "kumo", UserAgent: "kumo", AllowPrivate: true, Timeout: 5 * time.Second}}
		if err := run.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// The tools for batch crawls work like the REST API, in this process and with a remote server.
func TestBatchTools(t *testing.T) {
	t.Parallel()
	s := site()
	defer s.Close()
	p := batchCrawled(t, s.URL)
	quiet := slog.New(slog.DiscardHandler)
	places := []ui.Batch{{Name: "data/news", Place: p}, {Name: "other/news", Place: p}}
	one, two := ui.New(ui.Config{Batches: places[:1], Log: quiet}), ui.New(ui.Config{Batches: places, Log: quiet})
	served := httptest.NewServer(two)
	t.Cleanup(func() { served.Close(); one.Close(); two.Close() })
	at, err := url.Parse(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := within(t, mcp.New(mcp.Config{Batches: true, REST: mcp.Local(func() http.Handler { return one })}))
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, tool := range list.Tools {
		names += tool.Name + " "
	}
	if names != "collections days read_record records search_records " {
		t.Errorf("tools: %s", names)
	}
	batchTools(t, c, s.URL, "")

	c = within(t, mcp.New(mcp.Config{Crawls: true, Batches: true, REST: mcp.Remote(at)}))
	batchTools(t, c, s.URL, "news-2")
	if _, x := ask(t, c, "collections", nil); len(x["batches"].([]any)) != 2 {
		t.Errorf("places: %v", x)
	}
	for tool, want := range map[string]string{"days": "give a batch crawl: one of news, news-2",
		"stats": `"crawls":[]`, "search": "there is no crawl"} {
		if texts, _ := ask(t, c, tool, nil); !strings.Contains(strings.Join(texts, " "), want) {
			t.Errorf("%s: %q", tool, texts)
		}
	}
}

func batchTools(t *testing.T, c *sdk.ClientSession, seed, name string) {
	t.Helper()
	with := func(in args) args {
		if name != "" {
			in["batch"] = name
		}
		return in
	}
	if _, x := ask(t, c, "collections", with(args{})); !strings.Contains(fmt.Sprint(x["collections"]), "crawler_en") {
		t.Errorf("collections: %v", x)
	}
	_, x := ask(t, c, "days", with(args{"limit": 1}))
	if fmt.Sprint(x["next"]) != "2098-01-01/crawler_en" {
		t.Errorf("days: %v", x)
	}
	if _, x := ask(t, c, "days", with(args{"after": x["next"]})); len(x["days"].([]any)) != 1 || x["next"] != nil {
		t.Errorf("the day before: %v", x)
	}
	first := with(args{"collection": "en", "day": "2026-11-21"})
	if _, x := ask(t, c, "days", first); x["state"] != "done" || x["jobs"] == nil {
		t.Errorf("a day: %v", x)
	}
	if _, x := ask(t, c, "records", first); len(x["records"].([]any)) != 1 || x["next"] != nil {
		t.Errorf("records: %v", x)
	}
	for words, want := range map[string]int{"WATER green": 1, "water coffee": 0} {
		_, x := ask(t, c, "search_records", with(args{"words": words, "collection": "en"}))
		if len(x["hits"].([]any)) != want {
			t.Errorf("%s: %v", words, x)
		}
	}
	for as, want := range map[string]string{"": "Of green tea", "text": "Of green tea", "xml": "<page><url>",
		"headers": "X-Hostile: a[U+202E]b\n"} {
		in := with(args{"collection": "en", "url": seed + "/"}) // on the last day, when it was unchanged
		if as != "" {
			in["as"] = as
		}
		texts, x := ask(t, c, "read_record", in)
		if len(texts) != 2 || !strings.Contains(texts[1], want) || x["text"] != nil || x["day"] != "2026-11-21" {
			t.Errorf("as %q: %q, %v", as, texts, x)
		}
	}
	first["url"] = seed + "/gone"
	if texts, x := ask(t, c, "read_record", first); x["status"] != 404.0 || x["says"] == nil {
		t.Errorf("what is gone: %q", texts)
	}
	for want, in := range map[string]args{
		"no such day":         {"collection": "en", "day": "2026-01-01", "url": seed},
		"no such collection":  {"collection": "../..", "url": seed},
		"did not request":     {"collection": "en", "url": seed + "/never"},
		"is not a URL":        {"collection": "en", "url": "file:///etc/passwd"},
		"expected one of":     {"collection": "en", "url": seed + "/", "as": "../x"},
		"offset is":           {"collection": "en", "url": seed + "/", "offset": 1 << 30},
		"give a collection":   {"collection": "", "url": seed},
		"unknown batch crawl": {"batch": "none", "collection": "en", "url": seed},
	} {
		if in["batch"] == nil {
			in = with(in)
		}
		if texts, _ := ask(t, c, "read_record", in); texts[0] != "error" || !strings.Contains(texts[1], want) {
			t.Errorf("%v: %q, want %q", in, texts, want)
		}
	}
}

// A query for batch crawls does not wait for the list of crawls.
func TestNamesAreAskedForBesideEachOther(t *testing.T) {
	asked, may := make(chan struct{}, 1), make(chan struct{})
	rest := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/crawls" {
			asked <- struct{}{}
			<-may
		}
		_, _ = io.WriteString(w, `{"crawls":[],"batches":[]}`)
	})
	srv := mcp.New(mcp.Config{Crawls: true, Batches: true, REST: mcp.Local(func() http.Handler { return rest })})
	c, done := within(t, srv), make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "hosts"})
		done <- err
	}()
	<-asked
	// it must not wait for the other list
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "collections"}); err != nil {
		t.Error(err)
	}
	close(may)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
