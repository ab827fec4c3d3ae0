package batch_test

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
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
	"kumo/internal/lab/synthweb"
)

// A world is a generated web and a storage location for its crawls.
type world struct {
	server *synthweb.Server
	place  *file.Place
	dir    string
}

func newWorld(t testing.TB, cfg synthweb.Config) *world {
	t.Helper()
	server, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true, Log: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	w := &world{server: server, dir: t.TempDir()}
	if w.place, err = file.Open(filepath.Join(w.dir, "place"), vfs.OS); err != nil {
		t.Fatal(err)
	}
	return w
}

func text(resp *page.Response, pg *page.Page) (*page.MainText, error) {
	x, err := maintext.Extract(parse.UTF8(resp.Body, pg.Charset), resp.URL)
	return &page.MainText{Headline: x.Headline, Text: x.Text}, err
}

// collection returns a collection of the whole web.
func (w *world) collection(code string) *collection.Collection {
	c := collection.New()
	c.Code, c.Directory, c.Seeds, c.Scope, c.Depth = code, "crawler_"+code, w.server.SeedURLs(), "any", 100
	c.Interval, c.Language.Code = collection.Duration(20*time.Millisecond), code
	return c
}

func (w *world) pipeline(date string, reducers int, all ...*collection.Collection) *batch.Pipeline {
	return &batch.Pipeline{Deps: batch.Deps{Place: w.place},
		Runner: local.New(local.Config{Place: w.place, Temp: filepath.Join(w.dir, "temp")}), Collections: all, Date: date,
		Reducers: reducers, Fetching: batch.Fetching{Agent: "kumo", UserAgent: "kumo", AllowPrivate: true,
			DNSServer: w.server.DNS(), Timeout: 5 * time.Second}}
}

func (w *world) run(t testing.TB, p *batch.Pipeline) {
	t.Helper()
	if err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// documents returns a collection's Documents of a day, by URL.
func (w *world) documents(t testing.TB, c *collection.Collection, date string) map[string]*batch.Document {
	t.Helper()
	names, err := batch.DayFiles(t.Context(), w.place, c, "doc", date)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*batch.Document{}
	for _, name := range names {
		for r, err := range batch.ReadFile(t.Context(), w.place, name) {
			if err != nil {
				t.Fatal(err)
			}
			d, err := batch.ReadDocument(slices.Clone(r.Key), slices.Clone(r.Value))
			if err != nil {
				t.Fatal(err)
			}
			if all[d.URL] != nil {
				t.Errorf("%s is there twice", d.URL)
			}
			all[d.URL] = &d
		}
	}
	return all
}

const day1, day2 = "2026-11-21", "2026-11-22"

func TestEveryReachablePageIsFetchedOncePolitely(t *testing.T) {
	for _, reducers := range []int{1, 3} {
		if testing.Short() && reducers == 1 {
			continue // counted by three tasks
		}
		t.Run(fmt.Sprint(reducers, " reducers"), func(t *testing.T) {
			t.Parallel()
			cfg := synthweb.Clean(7, 6, 70)
			cfg.Traits = map[synthweb.Trait]int{synthweb.Delay: 100, synthweb.Chunked: 200, synthweb.Gzip: 300,
				synthweb.Legacy: 200}
			cfg.CrawlDelay = 100 * time.Millisecond
			w := newWorld(t, cfg)
			c := w.collection("en")
			w.run(t, w.pipeline(day1, reducers, c))
			score := w.server.Score()
			if score.Missing > 0 || score.Forbidden > 0 || score.BeforeRobots > 0 || score.Hasty > 0 || score.Impatient > 0 ||
				score.Beyond > 0 || score.Repeats > 0 {
				t.Errorf("the server saw:\n%s", score)
			}
			if score.MostInFlight.Value > 1 {
				t.Errorf("%d requests at once to %s", score.MostInFlight.Value, score.MostInFlight.Host)
			}
			if len(w.server.Log().Overlaps(20*time.Millisecond)) > 0 {
				t.Errorf("the least gap is %v at %s", score.LeastGap.Value, score.LeastGap.Host)
			}
			if score.Robots != int64(hosts(w.server.Log())) {
				t.Errorf("%d requests for the robots.txt of %d hosts", score.Robots, hosts(w.server.Log()))
			}
			pages := 0
			for _, d := range w.documents(t, c, day1) {
				if d.IsPage() {
					pages++
				}
			}
			if want := score.Statuses[200] - score.Robots; int64(pages) != want {
				t.Errorf("%d pages, of %d that were served", pages, want)
			}
			w.wellFormed(t, c, day1)
		})
	}
}

// wellFormed parses all XML files of a day.
func (w *world) wellFormed(t *testing.T, c *collection.Collection, date string) (pages int) {
	t.Helper()
	for _, folder := range []string{"xml", "other"} {
		names, err := batch.DayFiles(t.Context(), w.place, c, folder, date)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := place.ReadFile(t.Context(), w.place, name)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Pages []struct {
					URL string `xml:"url"`
				} `xml:"page"`
			}
			if err := xml.Unmarshal(data, &got); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			pages += len(got.Pages)
		}
	}
	if pages == 0 {
		t.Error("there are no pages in XML")
	}
	return pages
}

// hosts returns the number of hosts that received a request.
func hosts(log synthweb.Log) int {
	all := map[string]bool{}
	for _, r := range log {
		all[r.Host] = true
	}
	return len(all)
}
