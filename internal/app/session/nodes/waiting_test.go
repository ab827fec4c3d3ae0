package nodes

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/desired"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// TestTheStartIsHeardAtOnce: waiting nodes notice the start at once, not only at the end of their polling interval.
func TestTheStartIsHeardAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := inproc.New(1)
		b, err := hub.Join("a~1")
		if err != nil {
			t.Fatal(err)
		}
		m := &membership{n: &Node{Config: Config{Log: slog.New(slog.DiscardHandler), Timing: *quick(time.Minute)}, cluster: connection{hub}},
			id: node.Identity{Name: "a", Incarnation: "1"}, bus: &meter{Bus: b}}
		m.waiter.m = m
		heard := make(chan error, 1)
		go func() {
			_, err := m.await(t.Context(), func(r *desired.Record) bool { return r.State == desired.Running })
			heard <- err
		}()
		time.Sleep(10*statePollInterval + statePollInterval/10)
		begun := time.Now()
		if err := (node.Control{Registry: b}).Start(t.Context(), nil, []string{"http://a.test/"}); err != nil {
			t.Fatal(err)
		}
		if err := <-heard; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > statePollInterval/10 {
			t.Errorf("that took %v", took)
		}
		if found, err := bus.ReadAll(t.Context(), b, node.WaitingPrefix); err != nil || len(found) != 1 {
			t.Errorf("others see %d nodes that are about to be members, %v", len(found), err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhoIsAMemberDoesNotWait: the announcement of a waiting node is withdrawn when it becomes a member, or ends
// before.
func TestWhoIsAMemberDoesNotWait(t *testing.T) {
	t.Parallel()
	c := newCluster(t, jobtest.Serve(t, synthweb.Clean(17, 10, 1200)))
	c.tune = func(j *job.Job) { j.Frontier.Delay = 100 * time.Millisecond }
	waiting := func() int {
		all, err := c.control.Cluster(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range all.Nodes {
			if all.Nodes[i].Is == inspect.NodeWaiting {
				n++
			}
		}
		return n
	}
	if err := c.control.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := c.start("a")
	b := c.start("b")
	c.eventually("both wait", func() bool { return waiting() == 2 })
	b.kill()
	c.eventually("one does", func() bool { return waiting() == 1 })
	c.slowAfter(100)
	c.begin()
	c.members(1)
	c.eventually("none does", func() bool { return waiting() == 0 })
	a.kill()
}
