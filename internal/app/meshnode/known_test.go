package meshnode

import (
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/desired"
)

// Any node can count known URLs: before the start among the seeds, then among the URLs found by any node, which only
// the nodes that remember them know.
func TestHowManyURLsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := three(t)
		l.web.takes = 3 * time.Second
		l.start("n3~1")
		l.start("n4~1")
		time.Sleep(15 * time.Second)
		news := []string{"http://never.test/1", "http://never.test/2", "http://h0.test/never"}
		want := func(when string, urls []string, want control.Known) {
			t.Helper()
			for _, n := range l.nodes {
				begun := time.Now()
				got, err := n.CountKnown(t.Context(), urls)
				if err != nil || got != want {
					t.Errorf("%s: %s says %+v, %v; want %+v", when, n.self, got, err, want)
				}
				if took := time.Since(begun); took > knownTimeout+time.Second {
					t.Errorf("%s: %s takes %v", when, n.self, took)
				}
			}
		}
		if err := l.nodes[0].AddSeeds(t.Context(), page(0, 0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		want("before the start", append(news, page(0, 0)), control.Known{New: 3, Known: 1})
		l.nodes[0].begin(t, nil)
		time.Sleep(15 * time.Second)
		l.nodes[0].set(t, desired.Paused)
		time.Sleep(15 * time.Second)
		urls := news
		l.web.mu.Lock()
		for url := range l.web.fetched {
			urls = append(urls, url)
		}
		l.web.mu.Unlock()
		if urls = urls[:min(len(urls), control.MaxURLs)]; len(urls) < 50 {
			t.Fatalf("only %d pages are fetched", len(urls))
		}
		known := control.Known{New: 3, Known: len(urls) - 3}
		want("while it is paused", urls, known)
		counts := func(silent string) {
			t.Helper()
			c, err := l.nodes[0].QueryAll(t.Context(), []byte(`["x.test","/y/"]`))
			if err != nil || len(c.Nodes) != 5 || c.Unasked > 0 {
				t.Fatalf("%+v, %v", c, err)
			}
			for _, of := range c.Nodes {
				if want := map[bool]string{true: "", false: `["x.test","/y/"]`}[of.Node == silent]; string(of.Answer) != want {
					t.Errorf("%s has counted %q, want %q", of.Node, of.Answer, want)
				}
			}
		}
		counts("")
		l.hub.Partition("n3~1", true)
		counts("n3~1")
		l.nodes[0].wantMet(t)
		all := l.nodes
		l.nodes = append(all[:3:3], all[4])
		want("while a node is silent", urls, known)
		for _, n := range all {
			n.stop()
			<-n.over
		}
	})
}

// Messages with queries and answers are decoded without harm.
func FuzzQuery(f *testing.F) {
	var w varint.Writer
	w.Uint(1)
	f.Add([]byte(w))
	f.Add(append([]byte(w), `{"hit":1}`...))
	w.String("h.test")
	f.Add([]byte(w))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := newRequester(newMessages(&Config{Log: slog.New(slog.DiscardHandler)}))
		(&queryServer{asker: a, msgs: a.msgs}).answer("x~1", data) // has no answers
		got := make(chan []byte, 1)
		a.pending[1] = pendingRequest{"x~1", kindQueryReply, isAnswer, got}
		a.handleReply("x~1", kindQueryReply, data)
		if len(got) > 0 {
			if a, open := <-got, len(a.pending); open > 0 || len(a) > 0 && !json.Valid(a) {
				t.Error("an answer is none")
			}
		}
	})
}

// Messages on known URLs are decoded without harm.
func FuzzKnow(f *testing.F) {
	var w varint.Writer
	w.Uint(1)
	w.String("h.test")
	f.Add([]byte(append(w, make([]byte, 14)...)))
	f.Add([]byte{1, 2, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		a := newRequester(newMessages(&Config{Log: slog.New(slog.DiscardHandler)}))
		s := &survey{asker: a, msgs: a.msgs, answering: make(chan struct{}, 1)}
		s.answering <- struct{}{} // all slots are in use
		s.answer("x~1", data)
		got := make(chan []byte, 1)
		a.pending[1] = pendingRequest{"x~1", kindKnownReply, func(answer []byte) bool { return len(answer) == 1 }, got}
		a.handleReply("x~1", kindKnownReply, data)
		if len(got) > 0 && (len(a.pending) > 0 || len(<-got) != 1) {
			t.Error("an answer is none")
		}
	})
}
