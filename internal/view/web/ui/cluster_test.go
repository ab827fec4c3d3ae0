package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/inspect"
)

// A fakeCluster has the nodes that a test defines, and records actions.
type fakeCluster struct {
	mu     sync.Mutex // guards the fields below
	all    inspect.Cluster
	failed error
	looks  int
	said   []string
	hang   chan struct{} // queries wait until it is closed; nil: they return at once
}

func (f *fakeCluster) Cluster(ctx context.Context) (*inspect.Cluster, error) {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	all := f.all
	all.Time, all.Nodes = time.Now(), slices.Clone(f.all.Nodes)
	return &all, f.failed
}

func (f *fakeCluster) Started(context.Context) (map[string][]string, error) {
	return f.all.Settings, nil
}

func (f *fakeCluster) BlockedAll(_ context.Context, rules []string) (*inspect.BlockedAll, error) {
	b := inspect.NewBlockedAll()
	b.AddNode("n0000", []byte(`{"hit":7,"looked":1204,"waiting":1204,"whole":true,"examples":["http://a.example/`+rules[0]+
		`"]}`))
	b.AddNode("n0001", []byte(`{"hit":2,"looked":1000,"waiting":5000}`))
	b.AddNode("n0002", nil)
	return b, f.failed
}

func (f *fakeCluster) Close() error { return nil }

func (f *fakeCluster) As(by string) inspect.ClusterController { return &fakeSteerer{f, by} }

type fakeSteerer struct {
	*fakeCluster
	by string
}

func (f *fakeSteerer) do(what string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, f.by+": "+what)
	f.all.Changes = append(f.all.Changes, inspect.Change{Time: time.Now(), By: f.by, What: what})
	return nil
}

func (f *fakeSteerer) Pause(_ context.Context, on bool) error { return f.do(fmt.Sprint("pause ", on)) }
func (f *fakeSteerer) Stop(context.Context) error             { return f.do("stop") }
func (f *fakeSteerer) Add(_ context.Context, urls []string) (int, error) {
	return len(urls) - 1, f.do("add " + strings.Join(urls, " "))
}

func (f *fakeSteerer) Tune(_ context.Context, to func(map[string][]string) ([]inspect.Setting, error)) error {
	changes, err := to(f.all.Settings)
	if err != nil {
		return err
	}
	type setting struct {
		key    string
		values []string
	}
	var said []setting
	for _, c := range changes {
		said = append(said, setting{c.Key, c.Values})
	}
	return f.do(fmt.Sprint("set ", said))
}

func (f *fakeCluster) change(to func(*inspect.Cluster)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to(&f.all)
}

// nodesOf returns n nodes of a running crawl.
func nodesOf(n int) *fakeCluster {
	f := &fakeCluster{all: inspect.Cluster{Crawl: "nodes", State: "running", Epoch: uint64(n), Settled: true,
		Strategy: "shard",
		Since:    time.Now(), Settings: map[string][]string{"override": {"{match: {host: 'x.example'}, delay: 1s}"}}}}
	for i := range n {
		f.all.Nodes = append(f.all.Nodes, inspect.Node{Node: fmt.Sprintf("n%04d~1", i), Name: fmt.Sprintf("n%04d", i),
			Is:   inspect.NodeMember,
			Slot: i, Clock: time.Now(), Version: "1", Address: "http://127.0.0.1:1/", Load: inspect.Load{Pages: int64(i),
				Hosts: i + 1, Waiting: 2 * i}})
		f.all.Totals.Add(f.all.Nodes[i].Load)
	}
	return f
}

func clusterBed(t *testing.T, f *fakeCluster) *bed {
	b := &bed{log: &lockedLog{}}
	b.ui = New(Config{Crawls: []Crawl{{Name: "nodes", Cluster: f, Location: " of a test"}},
		Log: slog.New(slog.NewTextHandler(b.log, nil))})
	b.Server = httptest.NewServer(b.ui)
	t.Cleanup(b.ui.Close)
	t.Cleanup(b.Close)
	return b
}

// A cluster is shown as the REST API describes it, node by node, and nothing else of a crawl is there.
func TestCluster(t *testing.T) {
	t.Parallel()
	const n = 1000
	f, begin := nodesOf(n), time.Now()
	b, c := clusterBed(t, f), newChecker(t)
	var names []string
	for after := ""; ; {
		resp, text := b.ask(t, http.MethodGet, "/api/v1/crawls/nodes/cluster?limit=300&after="+url.QueryEscape(after), nil)
		if err := c.check("/api/v1/crawls/{crawl}/cluster", resp.StatusCode, resp.Header.Get("Content-Type"),
			[]byte(text)); err != nil {
			t.Fatal(err)
		}
		var a clusterAnswer
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		for _, n := range a.Nodes {
			names = append(names, n.Name)
		}
		if after = a.Next; after == "" {
			break
		}
	}
	if len(names) != n || !slices.IsSorted(names) {
		t.Errorf("%d nodes are listed", len(names))
	}
	for path, want := range map[string]int{"/crawls/nodes/cluster": 200, "/crawls/nodes/cluster?after=n0500": 200,
		"/crawls/nodes/cluster/part": 200,
		"/crawls":                    200, "/crawls/nodes": 404, "/crawls/nodes/hosts": 404, "/crawls/nodes/pages": 404,
		"/crawls/nodes/pages/1": 404, "/crawls/nodes/events": 404,
		"/api/v1/crawls": 200, "/api/v1/crawls/nodes": 404, "/api/v1/crawls/nodes/records": 404,
		"/api/v1/crawls/none/cluster":          404,
		"/api/v1/crawls/nodes/cluster?limit=0": 400, "/api/v1/crawls/nodes/actions/pause": 405, "/archived/x/nodes": 404} {
		resp, text := b.ask(t, http.MethodGet, path, nil)
		if resp.StatusCode != want {
			t.Errorf("%s: %d\n%.500s", path, resp.StatusCode, text)
		}
		if len(text) > 150_000 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
		if want == 200 && strings.HasPrefix(path, "/crawls/nodes/cluster") && !strings.Contains(path, "part") {
			wantTame(t, path, resp, text)
		}
	}
	if _, text := b.ask(t, http.MethodGet, "/crawls/nodes/cluster", nil); strings.Count(text, "<tr>") > 110 ||
		!strings.Contains(text, "and 49 more, in the table") ||
		!strings.Contains(text, `href="http://127.0.0.1:1/"`) {
		t.Errorf("the page is\n%.5000s", text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if took := time.Since(begin); f.looks > 2+int(took/(clusterInterval-100*time.Millisecond)) {
		t.Errorf("the cluster was looked at %d times in %v", f.looks, took)
	}
}

// Actions on the page are confirmed, apply to all nodes, and are recorded with their author; the REST API offers the
// same.
func TestClusterActs(t *testing.T) {
	t.Parallel()
	f := nodesOf(2)
	b := clusterBed(t, f)
	key := func(path string) string {
		_, text := b.ask(t, http.MethodGet, path, nil)
		_, text, _ = strings.Cut(text, `name="csrf" value="`)
		text, _, _ = strings.Cut(text, `"`)
		return text
	}
	for _, c := range []struct{ do, value, host, want string }{
		{"pause", "", "", "pause true"}, {"resume", "", "", "pause false"}, {"limit", "77", "", "set [{limit [77]}]"},
		{"add", "http://a.example/\nhttp://b.example/", "", "add http://a.example/ http://b.example/"},
		{"delay", "3s", "y.example", "set [{override [{match: {host: 'y.example'}, delay: 3s} {match: {host: 'x.example'}, " +
			"delay: 1s}]}]"},
		{"stop", "", "", "stop"},
	} {
		path := "/crawls/nodes/act/" + c.do
		form := url.Values{"csrf": {key(path)}, "value": {c.value}, "host": {c.host}}
		resp, text := b.ask(t, http.MethodPost, path, form)
		if before := len(f.said); resp.StatusCode != 200 || !strings.Contains(text, `name="sure"`) || before > 0 &&
			strings.HasSuffix(f.said[before-1], c.want) {
			t.Errorf("%s is not asked again: %d\n%s", c.do, resp.StatusCode, text)
		}
		form.Set("sure", "yes")
		resp, _ = b.ask(t, http.MethodPost, path, form)
		if want := map[bool]int{true: 200, false: 303}[c.do == "stop"]; resp.StatusCode != want ||
			!strings.HasSuffix(f.said[len(f.said)-1], "the web page of a test, from 127.0.0.1: "+c.want) {
			t.Errorf("%s: %d, %q", c.do, resp.StatusCode, f.said)
		}

		body, _ := json.Marshal(wish{Value: c.value, Host: c.host})
		before := len(f.said)
		if status, text := b.wish(t, c.do, string(body), "application/json"); status != 200 ||
			!strings.HasPrefix(text, `{"done":false,"says":"`) || len(f.said) > before {
			t.Errorf("%s, by the REST: %d %s", c.do, status, text)
		}
		body, _ = json.Marshal(wish{c.value, c.host, true})
		if status, text := b.wish(t, c.do, string(body), "application/json"); status != 200 ||
			!strings.HasPrefix(text, `{"done":true,"says":"`) || len(f.said) != before+1 ||
			newChecker(t).check("/api/v1"+actPath, status, "application/json", []byte(text)) != nil {
			t.Errorf("%s, by the REST: %d %s", c.do, status, text)
		}
	}
	form := url.Values{"csrf": {key("/crawls/nodes/act/block")}, "value": {"x.example"}}
	_, text := b.ask(t, http.MethodPost, "/crawls/nodes/act/block", form)
	const want = "At 2 nodes at least 9 of 2,204 URLs examined would be excluded; 6,204 wait in all. " +
		"Not counted: n0002, which has not answered in time. Examples: http://a.example/x.example"
	if !strings.Contains(text, want) {
		t.Errorf("what a rule hits is not counted at all nodes:\n%s", text)
	}
	check, said := newChecker(t), len(f.said)
	for _, c := range []struct {
		do, body, kind string
		want           int
	}{{"pause", `{"sure":true}`, "text/plain", 415}, {"pause", `{"sure":true}`, "", 415},
		{"pause", `{"sure":1}`, "application/json", 400}, {"pause", ``, "application/json", 400},
		{"pause", `{"sure":true,"value":"x"}`, "application/json", 400}, {"pause", `{"sure":true,"host":"x"}`,
			"application/json", 400}, {"nothing", `{}`, "application/json", 404},
		{"limit", `{"sure":true,"value":"x"}`, "application/json", 400}, {"delay", `{"sure":true,"value":"1s"}`,
			"application/json", 400}, {"pause", `{"shure":true}`, "application/json", 400}} {
		status, text := b.wish(t, c.do, c.body, c.kind)
		if status != c.want || len(f.said) > said {
			t.Errorf("%+v: %d %s", c, status, text)
		}
		if err := check.check("/api/v1"+actPath, status, "application/problem+json", []byte(text)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if log := b.log.String(); strings.Count(log, "web page: pause") != 2 || !strings.Contains(log, "from=127.0.0.1") {
		t.Errorf("the log is\n%s", log)
	}
	if _, text := b.ask(t, http.MethodGet, "/crawls/nodes/cluster", nil); !strings.Contains(text,
		"of a test, from 127.0.0.1") {
		t.Errorf("who did it is not to be seen in\n%s", text)
	}
}

// wish requests an action by the REST API.
func (b *bed) wish(t *testing.T, do, body, kind string) (status int, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/api/v1/crawls/nodes/actions/"+do,
		strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:5"
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	b.ui.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// Nodes' events are listed with users' actions, newest first, up to a limit, on each page alike. A cluster that does
// not answer is shown in its last known state, and without viewers it is not queried.
func TestClusterEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := nodesOf(3)
		at := time.Now()
		f.change(func(x *inspect.Cluster) {
			x.Events = []inspect.NodeEvent{{Time: at, What: "a is a member"}, {Time: at.Add(time.Second), What: "b has died"}}
			x.Changes = []inspect.Change{{Time: at.Add(-time.Second), By: "me", What: "start"},
				{Time: at.Add(2 * time.Second), By: "you", What: "pause"}}
		})
		done, end := context.WithCancel(t.Context())
		c := newCluster(done, Crawl{Cluster: f})
		defer func() { end(); c.close() }()
		time.Sleep(time.Hour)
		if f.looks > 0 {
			t.Errorf("nobody asks, and the cluster was looked at %d times", f.looks)
		}
		said := func() (all []string) {
			t.Helper()
			c.invalidate()
			x, err := c.snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range x.events {
				all = append(all, strings.TrimSpace(e.What+" "+e.By))
			}
			return all
		}
		if all := said(); !slices.Equal(all, []string{"pause you", "b has died", "a is a member", "start me"}) {
			t.Errorf("events are %q", all)
		}
		f.change(func(x *inspect.Cluster) {
			for i := range maxEvents {
				x.Events = append(x.Events, inspect.NodeEvent{Time: at.Add(time.Hour), What: fmt.Sprint("event ", i)})
			}
		})
		if all := said(); len(all) != maxEvents {
			t.Errorf("%d events are listed", len(all))
		}
		f.mu.Lock()
		f.failed = context.DeadlineExceeded
		f.mu.Unlock()
		time.Sleep(time.Minute)
		if x, err := c.snapshot(t.Context()); err != nil || len(x.words) == 0 || x.words[0].Level != levelProblem ||
			len(x.Nodes) != 3 || len(x.events) != maxEvents {
			t.Errorf("a cluster that does not answer: %+v, %v", x, err)
		}
	})
}

// A cluster that does not answer delays neither the list of crawls nor actions. Its page shows the last known state.
func TestAClusterThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := nodesOf(3)
		f.hang = make(chan struct{})
		s := New(Config{Crawls: []Crawl{{Name: "nodes", Cluster: f}}, Log: quiet()})
		defer s.Close()
		c, begin := s.crawls.all[0].cluster, time.Now()
		if all := newLister(t.Context(), s.crawls).entries(t.Context(), time.Minute); len(all) != 1 || all[0].Error == "" ||
			time.Since(begin) > listPatience {
			t.Errorf("%+v after %v", all, time.Since(begin))
		}
		close(f.hang)
		synctest.Wait()
		again := make(chan struct{})
		defer close(again)
		f.mu.Lock()
		f.hang = again
		f.mu.Unlock()
		time.Sleep(time.Minute)
		begin = time.Now()
		c.invalidate()
		x, err := c.snapshot(t.Context())
		if err != nil || len(x.Nodes) != 3 || time.Since(begin) > clusterInterval || len(x.words) == 0 ||
			!strings.HasPrefix(x.words[0].What, "This is the state 62 s ago") {
			t.Errorf("%+v, %v after %v", x, err, time.Since(begin))
		}
	})
}

// Over the limit, a new event stream of a cluster replaces the oldest one.
func TestListenersOfACluster(t *testing.T) {
	t.Parallel()
	b := clusterBed(t, nodesOf(1))
	oldest := b.listen(t, "/crawls/nodes/cluster/events")
	for range maxListeners {
		b.listen(t, "/crawls/nodes/cluster/events")
	}
	if text, err := io.ReadAll(oldest); err != nil || !strings.HasSuffix(string(text), "retry: 15000\n\n") {
		t.Errorf("%v: %s", err, text)
	}
	if _, text := b.ask(t, http.MethodGet, "/crawls/nodes/act/pause", nil); !strings.Contains(text,
		`href="/crawls/nodes/cluster">Cancel`) {
		t.Errorf("from the form back no way leads to the cluster: %s", text)
	}
}

// Cost of a query of 1,000 nodes and of their page.
func BenchmarkClusterPage(b *testing.B) {
	f := nodesOf(1000)
	all, _ := f.Cluster(b.Context())
	out := &responder{log: slog.New(slog.DiscardHandler)}
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/", nil)
	for b.Loop() {
		x := &clusterSnapshot{Cluster: all, words: clusterNotices(all), events: recentEvents(all)}
		out.render(httptest.NewRecorder(), http.StatusOK, "clusterpart", shownCluster(r, x))
	}
}
