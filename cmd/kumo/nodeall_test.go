package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
)

// A joining node has no part in its crawl yet.
type joining struct{ cluster.Node }

func (joining) Session() *session.Session { return nil }

// A crawl that is opened again after a failure is no longer failed.
func TestFailedCrawlIsOpenedAgain(t *testing.T) {
	a := &allRunner{failed: map[string]error{}}
	a.fail("news", errors.New("no space"))
	a.fail("docs", errors.New("no route"))
	every := func(error) bool { return true }
	if err := a.failures(every); err == nil || err.Error() != "crawl docs: no route\ncrawl news: no space" {
		t.Error(err)
	}
	n := &nodeRunner{clusterFlags: clusterFlags{crawl: "news"}, o: &options{}}
	a.opened(n, &crawlPart{}, joining{})
	if err := a.failures(every); err == nil || err.Error() != "crawl docs: no route" {
		t.Error(err)
	}
}

// A node of all crawls does not open a finished crawl again: the advice for its unsent records is another command.
func TestUnsentRecordsOfAllCrawls(t *testing.T) {
	a := &allRunner{nodeRunner: &nodeRunner{out: "crawls"}}
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	behind := follow.Advise(&follow.BacklogError{Sink: stats.Sink{Sink: "kafka://k/t", Waiting: 3}}, "crawls/news")
	err := a.withSinksOf(&session.IncompleteSending{SendErr: behind}, "news", log)
	if do := advice.Of(err); !isSinkBehind(err) || !strings.HasPrefix(do, "to send the rest, run: ") ||
		!strings.HasSuffix(do, " crawls/news") || said.String() != "" {
		t.Errorf("%v: %s\n%s", err, do, said.String())
	}
	err = a.withSinksOf(&session.IncompleteSending{SendErr: behind, RunErr: node.ErrLeft}, "news", log)
	if !errors.Is(err, node.ErrLeft) || isSinkBehind(err) || !strings.Contains(said.String(), "3 records are not sent") {
		t.Errorf("%v\n%s", err, said.String())
	}
	if err := a.withSinksOf(node.ErrStopped, "news", log); !errors.Is(err, node.ErrStopped) {
		t.Error(err)
	}
}
