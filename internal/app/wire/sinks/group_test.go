package sinks

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/archive/sink/sinktest"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
)

// The records of an earlier run are sent without another run. If several sinks lack records, all are errors.
func TestRecordsOfAnEarlierRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, down := newCrawl(t, 3), sink.Temporary(errors.New("no route"))
		for page := range 3 {
			c.visit(page)
		}
		all := map[string]*sinktest.Memory{"memory://a": {Down: down}, "memory://b": {}, "memory://c": {Down: down}}
		start := func() (g *Group, behind bool) {
			g = NewGroup(c.dir)
			for _, name := range []string{"memory://a", "memory://b", "memory://c"} {
				g.Add(follow.New(follow.Config{Dir: c.dir, Disk: vfs.OS, Name: name, Now: time.Now, Wait: sink.Sleep,
					Patience: time.Minute, Open: func(context.Context) (sink.Sink, error) { return all[name], nil }}))
			}
			behind, err := g.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return g, behind
		}
		g, behind := start()
		if !behind || g.CaughtUp() {
			t.Error("nothing is sent, and the sinks have caught up")
		}
		time.Sleep(30 * time.Second)
		if n := len(all["memory://b"].Records()); n != 3 {
			t.Errorf("a sink has %d records", n)
		}
		err := g.Finish(t.Context())
		for _, name := range []string{"memory://a", "memory://c"} {
			if err == nil || !strings.Contains(err.Error(), "3 records are not sent to "+name) ||
				!strings.Contains(advice.Of(err), "kumo export --to "+name+" "+c.dir) {
				t.Errorf("%s: %v; %s", name, err, advice.Of(err))
			}
			all[name].SetDown(nil)
		}
		if g, behind = start(); !behind {
			t.Error("the rest counts as sent")
		}
		if err := g.Finish(t.Context()); err != nil {
			t.Error(err)
		}
		for name, m := range all {
			if n := len(m.Records()); n != 3 {
				t.Errorf("%s has %d records", name, n)
			}
		}
		if g, behind = start(); behind || !g.CaughtUp() {
			t.Error("all is sent, and the sinks have not caught up")
		}
		g.Abort()
	})
}
