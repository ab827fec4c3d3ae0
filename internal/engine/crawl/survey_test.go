package crawl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/cluster/member"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/transfer"
)

// A survey lists pending URLs of other nodes' hosts (in the frontier's memory, on its disk, and on the abandoned
// queue), and nothing else.
func TestSurvey(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[1]
	want := map[string]int{"shelved.test": 1, "both.test": 1, "done.test": 1}
	x.owner = map[string]int{"ours.test": 1, "shelved.test": 1, "both.test": 1, "done.test": 1}
	for i := range 2500 {
		host := fmt.Sprintf("h%d.test", i)
		n.e.frontier.Push(host, item.Item{URL: "http://" + host + "/"})
		want[host] = 1
	}
	for host := range x.owner {
		if err := n.link("http://" + host + "/"); err != nil {
			t.Fatal(err)
		}
	}
	for _, host := range []string{"shelved.test", "both.test"} {
		if err := n.e.abandons.abandonOrigin("http://"+host, visit.Abandonment{Failure: page.Refused, Why: "refused"}); err != nil {
			t.Fatal(err)
		}
	}
	n.e.frontier.Push("both.test", item.Item{URL: "http://both.test/more"})
	n.e.frontier.TakeMatching("done.test", func(*item.Item) bool { return true })
	n.e.frontier.Push("rules.test", item.Item{URL: "http://rules.test/robots.txt", Robots: "http://ours.test"})
	if err := takeWhole(t.Context(), n.e, member.Transfer{From: "n0~1", To: "n1~1", Epoch: 3}, 0, false,
		waitingChunk(t, "http://comes.test/", "http://h7.test/more")); err != nil {
		t.Fatal(err)
	}
	survey := func() map[string]int {
		t.Helper()
		told := map[string]int{}
		if err := n.e.Transfers().Survey(t.Context(), func(hosts []string) error {
			if len(hosts) == 0 || len(hosts) > transfer.SurveyStep {
				t.Errorf("%d hosts at once", len(hosts))
			}
			for _, host := range hosts {
				told[host] = 1 // or twice, with both pending and known URLs
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return told
	}
	x.owner = map[string]int{"ours.test": 1}
	if told := survey(); !maps.Equal(told, want) {
		t.Errorf("%d hosts are told of, not %d", len(told), len(want))
	}
	for host := range want {
		x.owner[host] = 1
	}
	if told := survey(); len(told) > 0 {
		t.Errorf("%v are told of", slices.Collect(maps.Keys(told)))
	}
	x.owner = map[string]int{}
	calls := 0
	if err := n.e.Transfers().Survey(t.Context(),
		func([]string) error { calls++; return transfer.ErrOrder }); !errors.Is(err, transfer.ErrOrder) ||
		calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := n.e.Transfers().Survey(ended, func([]string) error { t.Error("it goes on"); return nil }); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

// A survey runs beside a crawl: hosts become hot and cold, are visited, and more are found.
func TestSurveyBesideACrawl(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[1]
	x.owner = map[string]int{}
	e := n.e
	for i := range 400 {
		host := fmt.Sprintf("theirs%d.test", i)
		e.frontier.Push(host, item.Item{URL: "http://" + host + "/"})
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := 0; ctx.Err() == nil; i++ {
			host := fmt.Sprintf("ours%d.test", i%500)
			e.frontier.Push(host, item.Item{URL: fmt.Sprintf("http://%s/%d", host, i)})
			if v, err := e.frontier.Next(ctx); err == nil && v.Host[0] == 'o' {
				e.frontier.Done(v, frontier.Result{Outcome: frontier.Answered})
			} else if err == nil {
				e.frontier.Postpone(v, 0)
			}
		}
	}()
	for range 20 {
		told := map[string]bool{}
		if err := e.Transfers().Survey(t.Context(), func(hosts []string) error {
			for _, host := range hosts {
				if host[0] == 't' {
					told[host] = true
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if len(told) != 400 {
			t.Errorf("%d hosts are told of", len(told))
		}
	}
	stop()
	<-over
}
