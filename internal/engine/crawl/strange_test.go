package crawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/transfer"
)

// strangeURLs are URLs that cannot be fetched.
var strangeURLs = []string{"mailto:a@b", "data:text/html,<a href=/x>", "javascript:void(0)", "urn:isbn:0",
	"file:///etc/passwd", "file://mine.test/x",
	"gopher://mine.test/1", "ftp://mine.test/x", "ws://mine.test/", "about:blank", "tel:+1", "x:",
	"blob:http://mine.test/1"}

// TestNobodyWaitsForWhatCannotBeFetched: only http and https URLs with a host are queued, from any source: others would
// wait for a robots.txt forever.
func TestNobodyWaitsForWhatCannotBeFetched(t *testing.T) {
	link := func(kind page.Kind) func(e *Engine, url string) error {
		return func(e *Engine, url string) error {
			var b batch
			from := item.Item{URL: "http://mine.test/robots.txt", Seed: "http://mine.test/", Kind: kind, ScopeSeed: true}
			if err := e.abandons.admission.addLinks(&b, &from, &page.Page{Links: []page.Link{{URL: url, Kind: kind}}}); err != nil {
				t.Fatal(err)
			}
			return e.abandons.commitBatch(&b, nil)
		}
	}
	doors := map[string]func(e *Engine, url string) error{
		"a seed": func(e *Engine, url string) error {
			u, err := weburl.Parse(url)
			if err != nil {
				return err
			}
			return e.Seeding.queueSeeds([]weburl.URL{u}, []weburl.URL{e.Seeding.scopeSeeds.admitSeed(u)}, nil, nil)
		},
		"a node's links": func(e *Engine, url string) error {
			refused, _, err := e.takeLinks(linksTo(url))
			if len(refused) > 0 {
				return fmt.Errorf("%v are refused, and will come again for ever", refused)
			}
			return err
		},
		"a dead node's links": func(e *Engine, url string) error {
			_, err := e.inherit(linksTo(url))
			return err
		},
		"the frontier": func(e *Engine, url string) error {
			e.frontier.Push(item.HostOf(url), item.Item{URL: url})
			e.frontier.Push("mine.test", item.Item{URL: url})
			return nil
		},
		"another host": func(e *Engine, _ string) error {
			e.frontier.Push("mine.test", item.Item{URL: "http://mine.test.example/"}, item.Item{URL: "http://mine.tes/"},
				item.Item{URL: "http://mine.test"})
			return nil
		},
	}
	for _, k := range []page.Kind{page.Anchor, page.Redirect, page.Refresh, page.Canonical, page.Header, page.Sitemap,
		page.Listed, page.Feed, page.Image} {
		doors["a link: "+k.String()] = link(k)
	}
	for name, enter := range doors {
		for _, url := range strangeURLs {
			e := inMemory(t, memory.New(), nil)
			e.cfg.Embeds = true
			if err := enter(e, url); err != nil {
				t.Errorf("%s: %s: %v", name, url, err)
			}
			if c := e.frontier.Counts(); c.URLs > 0 || e.known.undecided.Load() > 0 {
				t.Errorf("%s: %s waits", name, url)
			}
		}
	}
}

// takeLinks is TakeLinks without waiting for the journal.
func (e *Engine) takeLinks(data []byte) (refused []int, sequence uint64, err error) {
	var b batch
	if err := b.read(data); err != nil {
		return nil, 0, err
	}
	return e.Links.admit(&b, true, nil)
}

// A robots.txt may name anything as a sitemap; each name is requested or ignored.
func TestRobotsNameStrangeSitemaps(t *testing.T) {
	e := inMemory(t, memory.New(), nil)
	cache := robots.NewCache(robots.Config{Agent: "kumo"})
	const origin = "http://mine.test"
	rules := cache.Answer(origin, 200, []byte("Sitemap: "+strings.Join(strangeURLs,
		"\nSitemap: ")+"\nSitemap: /yes.xml\n"))
	w := e.runner.workers.acquire()
	if err := w.addSitemaps(&frontier.Visit{Item: item.Item{URL: origin + "/", Seed: origin + "/"}, Host: "mine.test"},
		origin, rules); err != nil {
		t.Fatal(err)
	}
	waits, err := e.frontier.Inspector().Queue("mine.test", 10)
	if err != nil || len(waits) != 1 || waits[0].URL != origin+"/yes.xml" || e.frontier.Counts().URLs != 1 {
		t.Errorf("%v wait, %v", waits, err)
	}
}

// Invalid URLs that an earlier version admitted are dropped and counted when a journal, or another node's chunk, is
// read.
func TestWhatAnEarlierVersionLetInIsDropped(t *testing.T) {
	for _, url := range strangeURLs {
		it := item.Item{URL: url, Seed: "http://mine.test/", Kind: page.Sitemap}
		c := entry.Candidate{Host: item.HostOf(url), Item: it}
		var enc, payload entry.Encoder
		enc.Found(&it)
		enc.Recrawl(&it, time.Unix(1, 0))
		payload.Candidate(&c)
		enc.Undecided(payload.Writer)
		enc.Outgoing(1, string(payload.Writer))
		log := memory.New()
		if err := log.Append(enc.Writer); err != nil {
			t.Fatal(err)
		}
		shelf := statefile.OpenAbandoned(vfs.OS, t.TempDir())
		s, err := recovery.Recover(log, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
			Frontier:  frontier.New(frontier.Config{}),
			Abandoned: shelf})
		if err != nil {
			t.Fatal(err)
		}
		if s.Pending() != 0 || s.Refused == 0 {
			t.Errorf("%s: %d wait, %d are counted", url, s.Pending(), s.Refused)
		}
		e := New(Config{}, Parts{Journal: log, Robots: robots.NewCache(robots.Config{}), Router: mine,
			Scope: weburl.NewScope(weburl.ScopeAny)}, s)
		if n := e.frontier.Counts().URLs; n > 0 || e.Refused() == 0 {
			t.Errorf("%s: %d wait, %d are counted", url, n, e.Refused())
		}
		if c.Host == "" && !e.Links.outbox.Empty() {
			t.Errorf("%s: it is bound for a node, and none will own it", url)
		}
	}
}

func TestStrangeURLsOfAChunkAreDropped(t *testing.T) {
	for _, url := range []string{"ftp://h.test/x", "gopher://h.test/", "http://h.test/ x", "http://h.test"} {
		pack := chunkWriterAt(t)
		pack.BeginPending("h.test", transfer.HostTiming{})
		for _, url := range []string{"http://h.test/1", url, "https://h.test/2"} {
			if strings.Count(url, "/") < 3 {
				continue // no version reads it
			}
			pack.Item(&item.Item{URL: url})
		}
		p, err := decodeChunk(t, pack.Chunk())
		if err != nil || len(p.Pending) != 1 || len(p.Pending[0].Items) != 2 ||
			p.Pending[0].Items[1].URL != "https://h.test/2" {
			t.Errorf("%s: %+v, %v", url, p, err)
		}
	}
}

// FuzzLinks judges links as pages, sitemaps and robots.txt files may contain them: each queued URL can be fetched from
// its queue's host.
func FuzzLinks(f *testing.F) {
	for _, url := range append(strangeURLs, "http://mine.test/", "//x/y", "http:", "http:///x", "https://a@b:80/../x?y#z",
		"/x") {
		f.Add(url, uint8(page.Sitemap))
		f.Add(url, uint8(page.Redirect))
	}
	f.Fuzz(func(t *testing.T, ref string, kind uint8) {
		e := inMemory(t, memory.New(), nil)
		from := item.Item{URL: "http://mine.test/robots.txt", Seed: "http://mine.test/"}
		var b batch
		if err := e.abandons.admission.addLinks(&b, &from, &page.Page{Links: []page.Link{{URL: ref, Kind: page.Kind(kind)}}}); err != nil {
			t.Fatal(err)
		}
		for i := range b.cands {
			c := &b.cands[i]
			if u, err := weburl.Parse(c.Item.URL); err != nil || !u.IsHTTP() || u.Host() != c.Host ||
				!strings.HasPrefix(u.Scheme(), "http") {
				t.Errorf("%q: %+v", ref, c)
			}
		}
	})
}
