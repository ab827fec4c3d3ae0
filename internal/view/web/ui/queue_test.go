package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

// A fixed is a source with a fixed answer.
type fixed struct{ inspect.Source }

func (fixed) Status(context.Context) (*inspect.Status, error) {
	return &inspect.Status{State: inspect.Running, Time: time.Now()}, nil
}

func (fixed) Explain(_ context.Context, url string) (*inspect.Explanation, error) {
	return &inspect.Explanation{URL: url, Known: &inspect.Known{URL: url}, Page: &inspect.Page{Status: 200}}, nil
}

// quiet returns a logger that logs nothing.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// If one crawl's disk hangs, requests for that crawl get an error in time. All others are answered at once, and that
// crawl again when its disk answers.
func TestADiskThatStallsIsItsCrawlsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := make(chan struct{})
		dir := t.TempDir()
		var crawls []Crawl
		for name, wait := range map[string]func(string){"good": func(string) {}, "dead": func(string) { <-stalls }} {
			at := filepath.Join(dir, name)
			for _, err := range []error{os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "pages.jsonl"), []byte("{}\n"),
				0o600)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			crawls = append(crawls, Crawl{Dir: at, Open: func(context.Context) (*inspect.View, error) {
				return inspect.NewView(fixed{}, at, vfstest.NewSlow(vfs.OS, wait), true, func() error { return nil }), nil
			}})
		}
		s := New(Config{Crawls: crawls, Log: quiet()})
		defer s.Close()
		ask := func(path string) (*httptest.ResponseRecorder, time.Duration) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "localhost"
			w, begin := httptest.NewRecorder(), time.Now()
			s.ServeHTTP(w, r)
			return w, time.Since(begin)
		}
		explain := func(crawl string) string { return "/api/v1/crawls/" + crawl + "/explain?url=http://h.test/" }
		answers := make(chan *httptest.ResponseRecorder, 2*maxAnswering)
		for range 2 * maxAnswering { // more than can be answered concurrently
			go func() {
				w, _ := ask(explain("dead"))
				answers <- w
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		wantSoon := func(path, want string) {
			t.Helper()
			if w, took := ask(path); w.Code != http.StatusOK || took > 0 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d after %v: %s", path, w.Code, took, w.Body)
			}
		}
		wantSoon(explain("good"), `"fetched"`)
		wantSoon("/crawls/good", "Overview")
		w, took := ask("/api/v1/crawls")
		if text := w.Body.String(); w.Code != http.StatusOK || took > listPatience ||
			!strings.Contains(text, `"name":"good","folder":"`+crawls[0].Dir[:1]) ||
			!strings.Contains(text, `"state":"running"`) || !strings.Contains(text, `"error"`) {
			t.Errorf("the list: %d after %v: %s", w.Code, took, text)
		}
		for range 2 * maxAnswering {
			if w := <-answers; w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		}
		w, took = ask("/crawls/dead/urls?url=http://h.test/")
		if text := w.Body.String(); w.Code != http.StatusServiceUnavailable || took > 0 ||
			!strings.Contains(text, "The crawl dead does not answer") ||
			!strings.Contains(text, "its disk may hang") {
			t.Errorf("%d after %v: %s", w.Code, took, text)
		}
		wantSoon(explain("good"), `"fetched"`)
		close(stalls)
		synctest.Wait()
		wantSoon(explain("dead"), `"fetched"`)
	})
}

// However many crawls are requested, few stay open.
func TestFewCrawlsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		open, most := map[string]bool{}, 0
		var mu sync.Mutex // guards open and most
		are := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(open)
		}
		var crawls []Crawl
		for range n {
			dir := t.TempDir()
			crawls = append(crawls, Crawl{Dir: dir, Open: func(context.Context) (*inspect.View, error) {
				mu.Lock()
				defer mu.Unlock()
				open[dir] = true
				most = max(most, len(open))
				return inspect.NewView(fixed{}, dir, vfs.OS, true, func() error {
					mu.Lock()
					defer mu.Unlock()
					delete(open, dir)
					return nil
				}), nil
			}})
		}
		s := New(Config{Crawls: crawls, Log: quiet()})
		defer s.Close()
		if all := newLister(t.Context(), s.crawls).entries(t.Context(), time.Minute); len(all) != n || all[n-1].State == nil {
			t.Errorf("%d crawls are listed", len(all))
		}
		synctest.Wait()
		if n := are(); most > maxIdle+5 || n > maxIdle { // four are requested at once, one is about to close
			t.Errorf("%d were open at once, %d are", most, n)
		}
		time.Sleep(idleFor)
		synctest.Wait()
		if n := are(); n > 0 {
			t.Errorf("%d stay open", n)
		}
	})
}

// A waitingPlace is a storage location that waits before it lists.
type waitingPlace struct {
	place.Place
	wait func(ctx context.Context, dir string) error
}

func (p *waitingPlace) List(ctx context.Context, dir string) ([]place.Info, error) {
	if err := p.wait(ctx, dir); err != nil {
		return nil, err
	}
	return p.Place.List(ctx, dir)
}

// placeOf returns a storage location with two collections and nothing else.
func placeOf(t *testing.T, wait func(ctx context.Context, dir string) error) place.Place {
	t.Helper()
	p, err := file.Open(filepath.Join(t.TempDir(), "news"), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"de", "en"} {
		if err := place.WriteFile(t.Context(), p, "crawler_"+code+"/state/2026-11-21.json",
			[]byte(`{"collection":"`+code+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	return &waitingPlace{p, wait}
}

// If one storage location of batch crawls hangs, everything else is answered at once, and the list of all reports it in
// time. The location works again when it answers.
func TestAPlaceThatStallsIsItsOwnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := make(chan struct{})
		s := New(Config{Batches: []Batch{{Name: "good", Place: placeOf(t, func(context.Context, string) error {
			return nil
		})},
			{Name: "dead", Place: placeOf(t, func(context.Context, string) error { <-stalls; return nil })}}, Log: quiet()})
		defer s.Close()
		ask := func(path string) (*httptest.ResponseRecorder, time.Duration) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "localhost"
			w, begin := httptest.NewRecorder(), time.Now()
			s.ServeHTTP(w, r)
			return w, time.Since(begin)
		}
		answers := make(chan *httptest.ResponseRecorder, 2*maxAnswering)
		for range 2 * maxAnswering {
			go func() {
				w, _ := ask("/api/v1/batches/dead/days")
				answers <- w
			}()
		}
		synctest.Wait()
		for _, path := range []string{"/api/v1/batches/good", "/experiments"} {
			if w, took := ask(path); w.Code != http.StatusOK || took > 0 {
				t.Errorf("%s: %d after %v: %s", path, w.Code, took, w.Body)
			}
		}
		for _, path := range []string{"/api/v1/batches", "/crawls"} {
			w, took := ask(path)
			if text := w.Body.String(); w.Code != http.StatusOK || took > listPatience ||
				!strings.Contains(text, "took too long") || !strings.Contains(text, "2026-11-21") {
				t.Errorf("%s: %d after %v: %s", path, w.Code, took, text)
			}
		}
		for range 2 * maxAnswering {
			if w := <-answers; w.Code != http.StatusServiceUnavailable {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		}
		w, took := ask("/batches/dead")
		if text := w.Body.String(); w.Code != http.StatusServiceUnavailable || took > 0 ||
			!strings.Contains(text, "The storage location of batch crawls dead does not answer") {
			t.Errorf("%d after %v: %s", w.Code, took, text)
		}
		close(stalls)
		synctest.Wait()
		if w, took := ask("/api/v1/batches/dead"); w.Code != http.StatusOK || took > 0 {
			t.Errorf("%d after %v: %s", w.Code, took, w.Body)
		}
	})
}

// However many storage locations hang, others are answered soon.
func TestPlacesThatHangAtOnceLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := make(chan struct{})
		all := []Batch{{Name: "good", Place: placeOf(t, func(context.Context, string) error { return nil })}}
		for i := range maxAnswering / maxQueueAnswering {
			all = append(all, Batch{Name: fmt.Sprint("dead", i), Place: placeOf(t, func(context.Context, string) error {
				<-stalls
				return nil
			})})
		}
		s := New(Config{Batches: all, Log: quiet()})
		defer s.Close()
		ask := func(path string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Code
		}
		for _, b := range all[1:] {
			for range maxQueueAnswering {
				go ask("/api/v1/batches/" + b.Name)
			}
		}
		synctest.Wait()
		begin := time.Now()
		if code := ask("/api/v1/batches/good"); code != http.StatusOK || time.Since(begin) > listPatience {
			t.Errorf("%d after %v", code, time.Since(begin))
		}
		close(stalls)
	})
}

// A client that disconnects while collections are listed does not leave an incomplete list behind.
func TestWhoGoesAwayLeavesAWholeList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := make(chan struct{})
		p := placeOf(t, func(ctx context.Context, dir string) error {
			if dir != "crawler_en/state" {
				return nil
			}
			select {
			case <-stalls:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		s := New(Config{Batches: []Batch{{Name: "news", Place: p}}, Log: quiet()})
		defer s.Close()
		ask := func(ctx context.Context) string {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/batches/news", nil)
			r.Host = "localhost"
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Body.String()
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		ask(ctx)
		close(stalls)
		synctest.Wait()
		if text := ask(t.Context()); strings.Count(text, `"directory"`) != 2 || strings.Contains(text, "left_out") {
			t.Error(text)
		}
	})
}

// A view that does not close blocks neither other crawls nor its own.
func TestAViewThatDoesNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := make(chan struct{})
		var crawls []Crawl
		for i := range maxIdle + 2 {
			dir := t.TempDir()
			crawls = append(crawls, Crawl{Dir: dir, Open: func(context.Context) (*inspect.View, error) {
				return inspect.NewView(fixed{}, dir, vfs.OS, true, func() error {
					if i == 0 {
						<-stalls
					}
					return nil
				}), nil
			}})
		}
		s := New(Config{Crawls: crawls, Log: quiet()})
		defer s.Close()
		defer close(stalls)
		begin := time.Now()
		for range 2 {
			for _, c := range s.crawls.all {
				if err := c.view.use(t.Context(), func(*inspect.View) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		}
		if took := time.Since(begin); took > 2*closePatience {
			t.Errorf("it took %v", took)
		}
	})
}

// The index of lines of a crawl's files is dropped a while after its last use, however long the view stays open.
func TestLinesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(Config{Crawls: []Crawl{{Dir: dir, Open: func(context.Context) (*inspect.View, error) {
			return inspect.NewView(fixed{}, dir, vfs.OS, true, func() error { return nil }), nil
		}}}, Log: quiet()})
		defer s.Close()
		c := s.crawls.all[0].view
		lines := func() *inspect.LineIndex {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.lines
		}
		use := func(v *inspect.View) (err error) {
			_, err = v.Explain(t.Context(), "http://h.test/")
			return err
		}
		look := func(*inspect.View) error { return nil }
		wants := func(d time.Duration, f func(*inspect.View) error) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) { // as an open page does
				if err := c.use(t.Context(), f); err != nil {
					t.Error(err)
				}
			}
		}
		wants(2*linesFor, use)
		had := lines()
		if wants(linesFor/2, look); lines() != had {
			t.Error("lines are forgotten that were just looked for")
		}
		if wants(linesFor, look); lines() == had {
			t.Error("lines are kept that nobody looks for, as a page is open")
		}
		if err := c.use(t.Context(), func(*inspect.View) error { return inspect.ErrUnreachable }); err == nil {
			t.Error("the view has not gone")
		}
		time.Sleep(2 * linesFor)
		synctest.Wait()
		if lines() != nil {
			t.Error("lines of a crawl that has gone are kept")
		}
	})
}

// The list of very many crawls is available at once, even if some are on a disk that hangs. It contains the known
// states, and soon those of all others.
func TestTheListOfManyIsThereAtOnce(t *testing.T) {
	listWait = 150 * time.Millisecond
	defer func() { listWait = time.Minute }()
	synctest.Test(t, func(t *testing.T) {
		const n, hang = 1000, 10
		stalls := make(chan struct{})
		var hangs atomic.Bool
		hangs.Store(true)
		var crawls []Crawl
		for i := range n {
			crawls = append(crawls, Crawl{Dir: fmt.Sprintf("/crawls/%04d", i), Open: func(context.Context) (*inspect.View,
				error) {
				if time.Sleep(20 * time.Millisecond); i < hang && hangs.Load() {
					<-stalls
				}
				return inspect.NewView(fixed{}, "", vfs.OS, false, func() error { return nil }), nil
			}})
		}
		s := New(Config{Crawls: crawls, Log: quiet()})
		defer s.Close()
		lister := newLister(t.Context(), s.crawls)
		list := func() (known, failed int) {
			t.Helper()
			begin := time.Now()
			all := lister.entries(t.Context(), listWait)
			if took := time.Since(begin); took > listWait || len(all) != n {
				t.Errorf("%d crawls after %v", len(all), took)
			}
			for i := range all {
				if all[i].State != nil {
					known++
				}
				if all[i].Error != "" {
					failed++
				}
			}
			return known, failed
		}
		known, failed := list()
		if known >= n/2 || failed > 0 {
			t.Errorf("%d known and %d in error at once", known, failed)
		}
		time.Sleep(n * 20 * time.Millisecond / maxInspecting)
		time.Sleep(listPatience)
		if known, failed = list(); known != n-hang || failed != hang {
			t.Errorf("%d known and %d in error in the end", known, failed)
		}
		hangs.Store(false)
		close(stalls)
		time.Sleep(n*listShare + time.Second)
		list()
		time.Sleep(n*20*time.Millisecond/maxInspecting + time.Second)
		if known, failed = list(); known != n || failed != 0 {
			t.Errorf("%d known and %d in error when the disk is there again", known, failed)
		}
	})
}

// A slowHosts is a source that lists its hosts only when permitted.
type slowHosts struct {
	fixed
	may chan int // number of pending URLs at its host
}

func (s slowHosts) Hosts(context.Context, int) iter.Seq2[inspect.Host, error] {
	return func(yield func(inspect.Host, error) bool) {
		yield(inspect.Host{Key: "h.test", Waiting: <-s.may, For: "delay"}, nil)
	}
}

// A query for the longest queues in a crawl with many hosts is answered in time: by the last result, or as not yet
// known.
func TestWhereMostWaitsIsNotWaitedFor(t *testing.T) {
	before := hostPatience
	hostPatience = [2]time.Duration{50 * time.Millisecond, 150 * time.Millisecond}
	defer func() { hostPatience = before }()
	synctest.Test(t, func(t *testing.T) {
		src := slowHosts{may: make(chan int)}
		s := New(Config{Log: quiet(), Crawls: []Crawl{{Dir: "/crawls/big", Open: func(context.Context) (*inspect.View,
			error) {
			return inspect.NewView(src, "", vfs.OS, true, func() error { return nil }), nil
		}}}})
		defer s.Close()
		want := func(path, text, refresh string) {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = "localhost"
			w, begin := httptest.NewRecorder(), time.Now()
			s.ServeHTTP(w, r)
			if took := time.Since(begin); w.Code != http.StatusOK || took > 150*time.Millisecond ||
				!strings.Contains(w.Body.String(), text) || againAfter(w.Body.String()) != refresh {
				t.Errorf("%s after %v: %d, without %s, or refresh is %q: %s", path, took, w.Code, text, againAfter(w.Body.String()),
					w.Body)
			}
		}
		const page, rest = "/crawls/big/hosts", "/api/v1/crawls/big/hosts?by=waiting"
		for range 2 {
			want(page, "are being scanned", "2")
			want(rest, `"partial":true`, "")
		}
		src.may <- 4711
		synctest.Wait()
		want(rest, `"waiting":4711`, "")
		want(page, "4,711", "")
		time.Sleep(time.Hour)
		want(page, "4,711", "")
		src.may <- 4712
		synctest.Wait()
		want(page, "4,712", "")
	})
}

// A hostSource returns a number of hosts, or an error, when permitted.
type hostSource struct {
	fixed
	n   int
	err error
	may chan struct{}
}

func (s *hostSource) Hosts(_ context.Context, n int) iter.Seq2[inspect.Host, error] {
	return func(yield func(inspect.Host, error) bool) {
		if <-s.may; s.err != nil {
			yield(inspect.Host{}, s.err)
			return
		}
		for i := range min(n, s.n) {
			if !yield(inspect.Host{Key: fmt.Sprint("h", i, ".test"), Waiting: s.n - i}, nil) {
				return
			}
		}
	}
}

// busyHosts serves a source and queries the longest queues.
func busyHosts(t *testing.T, src *hostSource) func(limit int) *httptest.ResponseRecorder {
	t.Helper()
	before := hostPatience
	hostPatience = [2]time.Duration{50 * time.Millisecond, 150 * time.Millisecond}
	t.Cleanup(func() { hostPatience = before })
	s := New(Config{Log: quiet(), Crawls: []Crawl{{Dir: "/crawls/big", Open: func(context.Context) (*inspect.View,
		error) {
		return inspect.NewView(src, "", vfs.OS, true, func() error { return nil }), nil
	}}}})
	t.Cleanup(s.Close)
	return func(limit int) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet,
			fmt.Sprint("/api/v1/crawls/big/hosts?by=waiting&limit=", limit), nil)
		r.Host = "localhost"
		w, begin := httptest.NewRecorder(), time.Now()
		if s.ServeHTTP(w, r); time.Since(begin) > 150*time.Millisecond {
			t.Errorf("it took %v", time.Since(begin))
		}
		return w
	}
}

// The error of a query for the longest queues is reported, even if each query is slow, and so is a query that hangs.
func TestWhyNobodyKnowsWhereMostWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &hostSource{err: errors.New("the disk is damaged"), may: make(chan struct{})}
		ask := busyHosts(t, src)
		if w := ask(1); !strings.Contains(w.Body.String(), `"partial":true`) {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		src.may <- struct{}{}
		synctest.Wait()
		for range 2 {
			if w := ask(1); w.Code != http.StatusInternalServerError ||
				!strings.Contains(w.Body.String(), "the disk is damaged") {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		}
		close(src.may)
		synctest.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		src := &hostSource{n: 3, may: make(chan struct{})}
		ask := busyHosts(t, src)
		ask(1)
		time.Sleep(rankingTimeout)
		if w := ask(1); w.Code != http.StatusServiceUnavailable ||
			!strings.Contains(w.Body.String(), "The crawl big does not answer") {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		close(src.may)
		synctest.Wait()
		if w := ask(1); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "h0.test") {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
}

// A query for a few hosts does not shorten the list for others.
func TestFewHostsAreAskedForAfterMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &hostSource{n: 50, may: make(chan struct{})}
		close(src.may)
		ask := busyHosts(t, src)
		ask(40)
		time.Sleep(2 * minHostAge)
		ask(3)
		time.Sleep(2 * minHostAge)
		src.may = make(chan struct{}) // queries are slow from here on
		text := ask(40).Body.String()
		if n := strings.Count(text, ".test"); n != 40 || strings.Contains(text, "partial") {
			t.Errorf("%d hosts: %s", n, text)
		}
		close(src.may)
		synctest.Wait()
	})
}

// Scans of a crawl's files are canceled when the server ends.
func TestFilesAreLeftWhenTheServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		lines := strings.Repeat(`{"url":"http://h.test/","status":200}`+"\n", 200_000)
		if err := os.WriteFile(filepath.Join(dir, "pages.jsonl"), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		var reads atomic.Int64
		disk := vfstest.NewSlow(vfs.OS, func(string) {
			reads.Add(1)
			time.Sleep(10 * time.Millisecond)
		})
		s := New(Config{Crawls: []Crawl{{Dir: dir, Open: func(context.Context) (*inspect.View, error) {
			return inspect.NewView(fixed{}, dir, disk, true, func() error { return nil }), nil
		}}}, Log: quiet()})
		err := s.crawls.all[0].view.use(t.Context(), func(v *inspect.View) error {
			x, err := v.Explain(t.Context(), "http://h.test/")
			if err == nil && !x.Reading {
				t.Error("the file is not gone through beside")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		s.Close()
		before := reads.Load()
		time.Sleep(2 * linesFor)
		if n := reads.Load() - before; n > 1 {
			t.Errorf("%d reads after the end", n)
		}
	})
}

// againAfter returns the seconds after which a page reloads; "" if it does not.
func againAfter(html string) string {
	_, text, _ := strings.Cut(html, `<body data-again="`)
	seconds, _, _ := strings.Cut(text, `"`)
	without := `<noscript><meta http-equiv="refresh" content="` + seconds + `"></noscript>`
	if text != "" && !strings.Contains(html, without) {
		return "never without a script"
	}
	return seconds
}
