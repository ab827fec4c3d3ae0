package control

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// A fakeNode is a crawl of one node.
type fakeNode struct {
	mu      sync.Mutex
	record  desired.Record
	version uint64
	seeds   []string
	gathers int
}

func (n *fakeNode) Crawl() (desired.Record, uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.record, n.version
}

func (n *fakeNode) Change(_ context.Context, f func(*desired.Record, uint64) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.record
	if err := f(&r, n.version); err != nil {
		return err
	}
	n.record, n.version = r, n.version+1
	return nil
}

func (n *fakeNode) AddSeeds(_ context.Context, lines string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seeds = append(n.seeds, lines)
	return nil
}

func (n *fakeNode) SeedChunks() int { return len(n.seeds) }

func (n *fakeNode) Gather(context.Context) (mesh.Tally, error) {
	time.Sleep(time.Second)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gathers++
	r := Report{Node: "a~1", Work: Work{Pages: 7, Rate: 2.5}, Member: true}
	return mesh.Tally{Nodes: 3, Missing: 1, Idle: 2, Figures: r.Figures(), Reports: [][]byte{[]byte(`{"node":"a~1"}`),
		[]byte("?")}}, nil
}

func (n *fakeNode) Results(context.Context) ([]byte, int, error) {
	return []byte(`{"pages":7}`), 1, nil
}

func (n *fakeNode) Locate(_ context.Context, host string) (strategy.Node, []strategy.Node, error) {
	if host == "lost.test" {
		return "", nil, errors.New("nobody answers")
	}
	return "a~1", []strategy.Node{"b~1", "c~1"}, nil
}

func (n *fakeNode) CountKnown(_ context.Context, urls []string) (Known, error) {
	return Known{New: len(urls) - 1, Known: 1}, nil
}

func (n *fakeNode) QueryAll(_ context.Context, query json.RawMessage) (Answers, error) {
	return Answers{Nodes: []Answer{{"a~1", query}, {Node: "b~1"}}, Unasked: 1}, nil
}

// serve runs a node's server until the test ends; if deaf is true, it receives nothing.
func serve(t *testing.T, hub *inproc.Hub, name strategy.Node, n Node, deaf bool) {
	t.Helper()
	b := join(t, hub, name)
	s := NewServer(name, n, func(to strategy.Node, data []byte) { b.Send(to, data) }, slog.New(slog.DiscardHandler))
	go b.Receive(t.Context(), func(from strategy.Node, data []byte) {
		if !deaf && data[0] == KindRequest {
			go s.Handle(t.Context(), from, append([]byte(nil), data[1:]...))
		}
	})
}

func join(t *testing.T, hub *inproc.Hub, name strategy.Node) bus.Messenger {
	t.Helper()
	b, err := hub.Join(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestAsked sends all requests, through a node that does not answer.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, node := inproc.New(1), &fakeNode{record: desired.Record{State: desired.Waiting}}
		serve(t, hub, "deaf~1", &fakeNode{}, true)
		serve(t, hub, "a~1", node, false)
		c := NewClient(join(t, hub, "guest~1"), []strategy.Node{"deaf~1", "a~1"})
		defer c.Close()
		ask := func(q Request) (*Response, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return c.Do(ctx, q)
		}
		if _, err := ask(Request{Do: Start}); !errors.Is(err, desired.ErrState) ||
			!strings.Contains(err.Error(), "no seeds") {
			t.Errorf("a start without seeds: %v", err)
		}
		if _, err := ask(Request{Do: Add, Seeds: "http://a.test/"}); err != nil {
			t.Error(err)
		}
		begun := time.Now()
		a, err := ask(Request{Do: Start, Settings: map[string][]string{"depth": {"2"}}, Seeded: true})
		if err != nil || a.Record.State != desired.Running || a.Record.Seeds != 1 {
			t.Errorf("%+v, %v", a, err)
		}
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("who has answered is asked first the next time, and it takes %v", took)
		}
		if _, err := ask(Request{Do: Tune, Version: a.Version - 1}); !errors.Is(err, ErrStale) {
			t.Errorf("a change of an old version: %v", err)
		}
		if a, err = ask(Request{Do: Tune, Version: a.Version, Settings: map[string][]string{"limit": {"9"}}}); err != nil ||
			a.Record.Settings["limit"][0] != "9" {
			t.Errorf("%+v, %v", a, err)
		}
		if _, err := ask(Request{Do: Set, State: desired.Running}); err != nil {
			t.Errorf("what is so already: %v", err)
		}
		if _, err := ask(Request{Do: "fly"}); err == nil || !strings.Contains(err.Error(), "fly") {
			t.Errorf("a question of another version: %v", err)
		}
		if a, err = ask(Request{Do: Locate, Hosts: []string{"x.test"}}); err != nil || a.Locations[0].Target != "a~1" ||
			len(a.Locations[0].Backups) != 2 {
			t.Errorf("%+v, %v", a, err)
		}
		if a, err = ask(Request{Do: QueryAll, Query: []byte(`{"hit":2}`)}); err != nil ||
			len(a.Answers.Nodes) != 2 ||
			a.Answers.Unasked != 1 ||
			string(a.Answers.Nodes[0].Answer) != `{"hit":2}` || a.Answers.Nodes[1].Answer != nil {
			t.Errorf("%+v, %v", a.Answers, err)
		}
		if _, err = ask(Request{Do: Locate, Hosts: []string{"lost.test"}}); err == nil {
			t.Error("a host that nobody has is found")
		}
		if _, err = ask(Request{Do: Locate, Hosts: make([]string, MaxHosts+1)}); err == nil {
			t.Error("any number of hosts is looked for")
		}
		if a, err = ask(Request{Do: CountKnown, URLs: []string{"http://a.test/", "http://b.test/"}}); err != nil ||
			a.Known != (Known{New: 1, Known: 1}) {
			t.Errorf("%+v, %v", a, err)
		}
		if _, err = ask(Request{Do: CountKnown, URLs: make([]string, MaxURLs+1)}); err == nil {
			t.Error("any number of URLs is looked up")
		}
		node.record.State = desired.Done
		if _, err := ask(Request{Do: Add, Seeds: "http://b.test/"}); !errors.Is(err, desired.ErrState) {
			t.Errorf("seeds are added to a crawl that is done: %v", err)
		}
		if _, err := ask(Request{Do: Add, Seeds: "http://b.test/", Seeded: true}); err != nil {
			t.Errorf("seeds for a start: %v", err)
		}
	})
}

// TestLook: concurrent requests share one gathering, which is repeated when it is too old.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, node := inproc.New(1), &fakeNode{}
		serve(t, hub, "a~1", node, false)
		var all sync.WaitGroup
		for _, name := range []strategy.Node{"g~1", "g~2", "g~3"} {
			c := NewClient(join(t, hub, name), []strategy.Node{"a~1"})
			all.Go(func() {
				defer c.Close()
				a, err := c.Do(t.Context(), Request{Do: Inspect})
				if err != nil || a.Sums.Nodes != 3 || a.Sums.Missing != 1 || a.Sums.Figure(SumPages) != 7 ||
					a.Sums.Figure(SumMilliRate) != 2500 || a.Sums.Figure(SumFetching) != 1 || a.Sums.Figure(99) != 0 ||
					a.Sums.Took < time.Second || len(a.Sums.All()) != 1 {
					t.Errorf("%+v, %v", a, err)
				}
			})
		}
		all.Wait()
		c := NewClient(join(t, hub, "g~4"), []strategy.Node{"a~1"})
		defer c.Close()
		for _, gathers := range []int{1, 2} {
			a, err := c.Do(t.Context(), Request{Do: Inspect})
			if err != nil || node.gathers != gathers {
				t.Errorf("gathered %d times, want %d: %+v, %v", node.gathers, gathers, a, err)
			}
			time.Sleep(sumsTTL)
		}
	})
}

// TestSilence: the error names the nodes that did not answer.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := inproc.New(1)
		serve(t, hub, "deaf~1", &fakeNode{}, true)
		c := NewClient(join(t, hub, "guest~1"), []strategy.Node{"deaf~1"})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Do(ctx, Request{Do: Read}); !errors.Is(err, ErrNoReply) || !strings.Contains(err.Error(), "deaf~1") {
			t.Error(err)
		}
	})
}

// Any message is decoded without harm, and answered or ignored.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"id":1,"do":"start","settings":{"a":["b"]}}`))
	f.Add([]byte(`{"id":1,"do":"locate","hosts":["a","b"]}`))
	f.Add([]byte(`{"id":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		answers := 0
		s := NewServer("a~1", &fakeNode{}, func(strategy.Node, []byte) { answers++ }, slog.New(slog.DiscardHandler))
		if strings.Contains(string(data), "look") {
			t.Skip("it takes a second")
		}
		s.Handle(t.Context(), "b~1", data)
		if answers > 1 || len(s.active) != 0 {
			t.Errorf("%d answers, %d questions are left", answers, len(s.active))
		}
	})
}
