package ui

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// The size of TestViewsOfManyHosts, and a folder that keeps its data for the next run.
var (
	scaleHosts, _ = strconv.Atoi(os.Getenv("KUMO_TEST_HOSTS"))
	scaleDir      = os.Getenv("KUMO_TEST_HOSTS_DIR")
	scaleLoad, _  = strconv.Atoi(os.Getenv("KUMO_TEST_HOSTS_PAGES"))     // pages per second, under load; default 2000
	scaleAsk      = regexp.MustCompile(os.Getenv("KUMO_TEST_HOSTS_ASK")) // views to query; default all
)

func init() {
	if scaleHosts == 0 { // tests wait for complete answers, however busy the machine
		hostPatience = [2]time.Duration{time.Minute, time.Minute}
		listWait = time.Minute
	}
}

// TestViewsOfManyHosts fills the state of a crawl with hosts of one to three URLs each, a quarter of them visited, and
// queries all views of hosts and URLs as for a running crawl. It logs the duration of queries, without and with an
// engine's load, and how long that load had to wait:
//
//	KUMO_TEST_HOSTS=1000000 go test -v -timeout 30m -run TestViewsOfManyHosts ./internal/view/web/ui
//
// Cold views are queried until they are complete, and that time is logged. It fails if one percent of queries takes
// longer than 200 ms. By default it is small, and only checks that all views answer.
func TestViewsOfManyHosts(t *testing.T) {
	big := scaleHosts > 0
	s := &scaled{t: t, n: 2000}
	if big {
		s.n = scaleHosts
	}
	s.open()
	defer s.close()
	n := 3
	if big {
		n = 100
		s.base("without a look", nil)
	}
	s.asks("cold", 1)
	s.asks("alone", n)
	s.base("with looks", func() { s.asks("under load", n) })
	for _, bad := range s.slow {
		if big {
			t.Error(bad)
		}
	}
}

// A scaled is the state of a large crawl, and its page.
type scaled struct {
	t    *testing.T
	n    int // number of hosts
	dir  string
	db   *seen.DB
	f    *frontier.Frontier
	ui   *Server
	stop []func()
	slow []string
	mu   sync.Mutex // guards dice
	dice *rand.Rand
}

// host returns the name of host i, in no order.
func (s *scaled) host(i int) string {
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	x ^= x >> 29
	www := ""
	if x&1 == 0 {
		www = "www."
	}
	return www + strconv.FormatUint(x*0xbf58476d1ce4e5b9>>16, 36) + [...]string{".com", ".example", ".de",
		".co.uk"}[x>>8&3]
}

// url returns URL j of host i.
func (s *scaled) url(i, j int) string {
	scheme := "https://"
	if i%5 == 0 {
		scheme = "http://"
	}
	if j == 0 {
		return scheme + s.host(i) + "/"
	}
	return scheme + s.host(i) + "/articles/2026/" + strconv.Itoa(i*7919+j) + "/a-title-in-words.html"
}

func (s *scaled) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scaled) open() {
	s.dice = rand.New(rand.NewPCG(1, 2))
	if s.dir = scaleDir; s.dir == "" {
		s.dir = s.t.TempDir()
	}
	s.check(os.MkdirAll(filepath.Join(s.dir, "state"), 0o755))
	_, err := os.Stat(filepath.Join(s.dir, "filled"))
	filled := err == nil
	s.db, err = seen.Open(vfs.OS, filepath.Join(s.dir, "state", "seen"), seen.Config{})
	s.check(err)
	s.f, _, err = frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(s.dir, "state", "frontier"),
		Memory: 128 << 20,
		Delay:  time.Second, Hosts: 64})
	s.check(err)
	if !filled {
		begin := time.Now()
		s.fill()
		s.t.Logf("filled with %d hosts in %.0f s", s.n, time.Since(begin).Seconds())
		s.check(os.WriteFile(filepath.Join(s.dir, "filled"), nil, 0o600))
	}
	s.warm()
	st := s.db.Stats()
	s.t.Logf("%d URLs known, %d runs of %d MB, %d MB in memory, %d hosts wait", s.db.Len(), st.Runs, st.Disk>>20,
		st.Parts>>20, s.f.Counts().Hosts)
	s.serve()
}

// merge writes frozen data to disk.
func (s *scaled) merge() {
	s.check(s.db.Merge(context.Background(), func([]seen.Decided) error { return nil }))
	s.check(seen.CompactAll(context.Background(), s.db))
}

func (s *scaled) fill() {
	pages, robots := s.create("pages.jsonl"), s.create("state/robots.jsonl")
	born := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var batch []seen.URL
	for i := range s.n {
		for j := range 1 + i%3 {
			batch = append(batch, seen.URL{URL: s.url(i, j), Depth: 1, State: seen.Known})
		}
		if len(batch) >= 1000 || i == s.n-1 {
			s.db.Offer(batch, nil)
			batch = batch[:0]
			if s.db.Full() && s.db.Freeze(0) {
				s.merge()
			}
		}
		first := 0 // of the pending hosts
		if i%4 == 0 {
			first = 1
			at := born.Add(time.Duration(i/4) * time.Second / 500)
			s.db.UpdateMeta(s.url(i, 0), seen.Meta{Fetched: at.Truncate(time.Second), Status: 200})
			fmt.Fprintf(robots, `{"origin":%q,"url":%[1]q,"time":%q,"status":404,"lines":null}`+"\n", originOf(s.url(i, 0)),
				at.Format(time.RFC3339Nano))
			fmt.Fprintf(pages, `{"url":%q,"status":200,"time":%q,"type":"text/html","charset":"utf-8","lang":"en","title":"What is on the first page of this host","bytes":45000,"digest":"sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","depth":1,"from":"https://links.example/","links":27,"warc":"kumo-20261101-00001.warc.gz","offset":%d,"connect_ms":1,"first_byte_ms":20,"total_ms":40}`+"\n",
				s.url(i, 0), at.Format(time.RFC3339Nano), i*1000)
		}
		for j := first; j < 1+i%3; j++ {
			u := s.url(i, j)
			s.f.Push(s.host(i), frontier.Item{URL: u, From: originOf(u) + "/", Path: "LL", Rank: 1})
		}
		s.f.WaitForRoom(context.Background())
	}
	s.db.Freeze(0)
	s.merge()
	for i := range 100_000 { // of one host, so that there is a longest queue
		u := "https://large.example/" + strconv.Itoa(i)
		s.f.Push("large.example", frontier.Item{URL: u, Path: "L", Rank: 1})
	}
	s.check(pages.Flush())
	s.check(robots.Flush())
	c, err := s.f.Cut()
	s.check(err)
	s.check(c.Write(nil))
}

func originOf(u string) string {
	x, _ := weburl.Parse(u)
	return x.Origin()
}

func (s *scaled) create(name string) *bufio.Writer {
	f, err := os.Create(filepath.Join(s.dir, filepath.FromSlash(name)))
	s.check(err)
	s.stop = append(s.stop, func() { f.Close() })
	return bufio.NewWriterSize(f, 1<<20)
}

// warm fills memory as it is on average: the frozen part, and half of the active one. All of it is new.
func (s *scaled) warm() {
	if s.n < 100_000 {
		return
	}
	var batch []seen.URL
	frozen := false
	for i := s.n; ; i++ {
		batch = append(batch, seen.URL{URL: s.url(i, 0), Depth: 1, State: seen.Known}, seen.URL{URL: s.url(i, 1), Depth: 1,
			State: seen.Known})
		if len(batch) < 1000 {
			continue
		}
		s.db.Offer(batch, nil)
		batch = batch[:0]
		switch {
		case !frozen && s.db.Full():
			frozen = s.db.Freeze(0)
		case frozen && s.db.Stats().Parts > 256<<20*7/16*3/2:
			return
		}
	}
}

// serve serves the page through the interface of a running crawl.
func (s *scaled) serve() {
	file := filepath.Join(s.dir, "look.json")
	l, err := inspect.Listen(file, scaledSource{&inspect.Live{Frontier: s.f, Known: s.db}, s})
	s.check(err)
	go l.Serve() // it ends with the test
	s.ui = New(Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Crawls: []Crawl{{Dir: s.dir, Open: func(ctx context.Context) (*inspect.View, error) {
			c, err := inspect.Dial(ctx, file)
			if err != nil {
				return nil, err
			}
			return inspect.NewView(c, s.dir, vfs.OS, true, c.Close), nil
		}}}})
	s.stop = append(s.stop, func() {
		s.ui.Close()
		l.Close()
	})
}

func (s *scaled) close() {
	for _, f := range slices.Backward(s.stop) {
		f()
	}
	s.check(s.f.Close())
	s.check(s.db.Close())
}

// A scaledSource answers like an engine.
type scaledSource struct {
	*inspect.Live
	s *scaled
}

func (x scaledSource) Status(context.Context) (*inspect.Status, error) {
	c, st := x.s.f.Counts(), &inspect.Status{State: inspect.Running, Time: time.Now()}
	st.Waiting, st.Hosts = c.URLs, c.Hosts
	return st, nil
}

func (x scaledSource) Explain(_ context.Context, text string) (*inspect.Explanation, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		return nil, err
	}
	e := &inspect.Explanation{URL: text}
	if found, err := x.Frontier.Inspector().Find(u.Host(), text); err != nil {
		return nil, err
	} else if found != nil {
		e.Waits, e.Place = &inspect.Item{URL: text}, found.Position
	}
	if _, _, err := x.Known.Pending(text); err != nil {
		return nil, err
	}
	k, known, err := x.Known.Get(text)
	if known {
		e.Known = &inspect.Known{URL: text, State: "known", Since: k.First, Fetched: k.Fetched, Status: k.Status}
		if !k.Fetched.IsZero() {
			e.Page = &inspect.Page{Time: k.Fetched, Status: k.Status}
		}
	}
	x.Known.Arrange(100 * time.Millisecond)
	for k, err := range x.Known.ScanAfter("https://"+u.Host()+"/", "") { // as the pages of a host are counted
		_, _ = k, err
	}
	return e, err
}

func (x scaledSource) Curves(context.Context) (*stats.Curves, error) { return &stats.Curves{}, nil }

func (x scaledSource) Top(context.Context, int, bool) iter.Seq2[inspect.Important, error] {
	return func(func(inspect.Important, error) bool) {}
}

const waits = "where most waits"

// asks sends each query several times, with random hosts and URLs.
func (s *scaled) asks(how string, n int) {
	c := "/crawls/" + s.ui.Names()[0]
	of := func(path string) func(i int) string {
		return func(i int) string {
			u := s.url(i, 0)
			return strings.NewReplacer("HOST", url.QueryEscape(s.host(i)), "URL", url.QueryEscape(u), "PRE",
				s.host(i)[:2]).Replace(path)
		}
	}
	for _, q := range []struct {
		name string
		path func(int) string
	}{
		{"overview", of(c + "")},
		{waits, of("/api/v1" + c + "/hosts?by=waiting")},
		{"hosts from the first on", of(c + "/hosts?by=name")},
		{"hosts from a prefix on", of("/api/v1" + c + "/hosts?prefix=PRE")},
		{"hosts behind one", of("/api/v1" + c + "/hosts?after=HOST")},
		{"500 hosts behind one", of("/api/v1" + c + "/hosts?limit=500&after=HOST")},
		{"one host, its queue", of(c + "/hosts/HOST?_=")},
		{"known URLs of a prefix", of("/api/v1" + c + "/urls?prefix=https://PRE")},
		{"known URLs behind one", of("/api/v1" + c + "/urls?after=URL")},
		{"500 known URLs behind one", of("/api/v1" + c + "/urls?limit=500&after=URL")},
		{"explanation of a URL", of("/api/v1" + c + "/explain?url=URL")},
		{"pages", of(c + "/pages")},
		{"pages of a host", of("/api/v1" + c + "/records?prefix=HOST")},
	} {
		if !scaleAsk.MatchString(q.name) {
			continue
		}
		var times []time.Duration
		var whole time.Duration // longest time until an answer was complete
		parts := 0              // number of incomplete answers
		var before, after runtime.MemStats
		begin, used := time.Now(), cpu()
		runtime.ReadMemStats(&before)
		for range n {
			s.mu.Lock()
			i := s.dice.IntN(s.n)
			s.mu.Unlock()
			if q.name == waits { // as if nobody had queried before
				s.forgetBusiest()
			}
			took, partial := s.ask(q.path(i))
			times = append(times, took)
			if !partial {
				continue
			}
			parts++
			for at := time.Now(); partial; _, partial = s.ask(q.path(i)) {
				time.Sleep(10 * time.Millisecond)
				whole = max(whole, took+time.Since(at))
			}
			if time.Since(begin) > 20*time.Second {
				break
			}
		}
		runtime.ReadMemStats(&after)
		slices.Sort(times)
		at := func(share int) float64 { return times[(len(times)-1)*share/100].Seconds() * 1000 }
		s.t.Logf("%-10s %-26s %4d times: p50 %8.2f ms, p99 %8.2f, max %8.2f; %7.2f ms CPU, %7d kB; %d partial, whole in "+
			"%.0f ms", how, q.name, len(times), at(50), at(99),
			times[len(times)-1].Seconds()*1000, 1000*(cpu()-used)/float64(len(times)),
			(after.TotalAlloc-before.TotalAlloc)/uint64(len(times))>>10, parts, whole.Seconds()*1000)
		if at(99) > 200 {
			s.slow = append(s.slow, fmt.Sprintf("%s, %s: %.0f ms", q.name, how, at(99)))
		}
	}
}

// cpu returns the processor time of the process in seconds, if the system reports it.
func cpu() float64 {
	stat, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}

// forgetBusiest waits until no query runs, and drops the last result.
func (s *scaled) forgetBusiest() {
	l := s.ui.crawls.all[0].hosts
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.querying != nil {
		looking := l.querying
		l.mu.Unlock()
		<-looking
		l.mu.Lock()
	}
	l.all, l.n, l.time, l.took = nil, 0, time.Time{}, 0
}

// ask returns how long an answer took, and whether it was incomplete.
func (s *scaled) ask(path string) (took time.Duration, partial bool) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	begin := time.Now()
	s.ui.ServeHTTP(w, r)
	took = time.Since(begin)
	if w.Code != http.StatusOK && w.Code != http.StatusNotFound {
		s.t.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	text := w.Body.String()
	return took, againAfter(text) != "" || strings.Contains(text, `"partial":true`) ||
		strings.Contains(text, `"reading":true`)
}

// base simulates fetching while do runs, or for some seconds, and logs how long known URLs and queues delayed it. Each
// page is a turn at the frontier and forty links; ten links are new.
func (s *scaled) base(how string, do func()) {
	pages := scaleLoad
	if pages == 0 {
		pages = 2000
	}
	done := make(chan struct{})
	var wait sync.WaitGroup
	var merging atomic.Bool
	var offers, turns []time.Duration
	wait.Go(func() {
		dice := rand.New(rand.NewPCG(3, 4))
		urls, news := make([]seen.URL, 40), make([]seen.News, 0, 40)
		begin, next := time.Now(), s.n*2
		for page := 0; ; page++ {
			select {
			case <-done:
				return
			default:
			}
			if ahead := time.Duration(page)*time.Second/time.Duration(pages) - time.Since(begin); ahead > 0 {
				time.Sleep(ahead)
			}
			for i := range urls {
				h := dice.IntN(s.n)
				if i < 10 {
					next++
					h = next
				}
				urls[i] = seen.URL{URL: s.url(h, 1), State: seen.Known}
			}
			at := time.Now()
			news = s.db.Offer(urls, news[:0])
			offers = append(offers, time.Since(at))
			if s.db.Full() && !merging.Swap(true) {
				s.db.Freeze(0) // unless something is frozen
				wait.Go(func() {
					defer merging.Store(false)
					s.merge()
				})
			}
			at = time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			v, err := s.f.Next(ctx)
			cancel()
			if err != nil {
				continue
			}
			for i := range 10 {
				h := s.host(next - i)
				s.f.Push(h, frontier.Item{URL: s.url(next-i, 1), Rank: 1})
			}
			s.f.Done(v, frontier.Result{Outcome: frontier.Answered})
			turns = append(turns, time.Since(at))
		}
	})
	if do == nil {
		time.Sleep(3 * time.Second)
	} else {
		do()
	}
	close(done)
	wait.Wait()
	for name, all := range map[string][]time.Duration{"an offer of 40 URLs": offers, "a turn, with ten pushed": turns} {
		if slices.Sort(all); len(all) > 0 {
			ms := func(share int) float64 { return all[(len(all)-1)*share/1000].Seconds() * 1000 }
			s.t.Logf("%s, %s: %d, p50 %.3f ms, p99 %.3f, p99.9 %.3f, max %.3f", how, name, len(all), ms(500), ms(990), ms(999),
				ms(1000))
		}
	}
}
