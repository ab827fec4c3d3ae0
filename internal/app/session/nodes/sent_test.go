package nodes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/content/policy"
	"kumo/internal/state/store"
)

// A sender is a session.Sender whose progress the test sets.
type sender struct {
	acked  map[string]int64
	behind error // returned by Finish when nobody stops it
	calls  []string
}

func (s *sender) Abort()                         { s.calls = append(s.calls, "abort") }
func (s *sender) Acknowledged() map[string]int64 { return s.acked }
func (s *sender) CaughtUp() bool                 { return true }

func (s *sender) Start(context.Context) (bool, error) {
	s.calls = append(s.calls, "start")
	return false, nil
}

func (s *sender) Finish(ctx context.Context) error {
	s.calls = append(s.calls, "finish")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.behind
}

// sending returns the membership of a node that sends records, and its fake sender.
func sending(t *testing.T, net *inproc.Hub, name string) (*membership, *sender) {
	t.Helper()
	b, err := net.Join("a~1")
	if err != nil {
		t.Fatal(err)
	}
	s := &sender{acked: map[string]int64{"kafka://k/t": 0, "postgres://p/d": 0}}
	m := &membership{n: &Node{Config: Config{Log: slog.New(slog.DiscardHandler),
		NewSender: func(_ *job.Job, urls []string) (session.Sender, error) {
			if !slices.Equal(urls, []string{"kafka://k/t", "postgres://p/d"}) {
				t.Errorf("sinks %v", urls)
			}
			return s, nil
		}}}, id: node.Identity{Name: "a", Incarnation: name}, bus: &meter{Bus: b}, job: &job.Job{},
		settings: map[string][]string{job.SinkKey: {"kafka://k/t", "postgres://p/d"}}}
	m.sinks.m = m
	if err := m.sinks.open(); err != nil {
		t.Fatal(err)
	}
	return m, s
}

// A node publishes how far its sinks are. The node that takes over counts a page as sent when all sinks have it.
func TestSentRecordsOfADeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := inproc.New(1)
		m, s := sending(t, net, "1")
		if err := m.sinks.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		other, err := net.Join("b~1")
		if err != nil {
			t.Fatal(err)
		}
		heir := &failedNodes{bus: other, sender: &sender{acked: map[string]int64{"kafka://k/t": 9, "postgres://p/d": 9}}}
		upTo := func(length int64) bool {
			t.Helper()
			sent, err := heir.sentBefore(t.Context(), m.id.Node())
			if err != nil {
				t.Fatal(err)
			}
			return sent([]store.Mark{{Name: "crawl.log", Length: 1 << 40}, {Name: "pages.jsonl", Length: length}})
		}
		if upTo(1) {
			t.Error("a node that has published nothing has sent its records")
		}
		for step, acked := range []map[string]int64{{"kafka://k/t": 500, "postgres://p/d": 200},
			{"kafka://k/t": 800, "postgres://p/d": 900}, {"kafka://k/t": 800, "postgres://p/d": 0}} {
			s.acked = acked
			time.Sleep(2 * sendInterval)
			least := min(acked["kafka://k/t"], acked["postgres://p/d"])
			if !upTo(least) || upTo(least+1) {
				t.Errorf("step %d: up to %d: %v, one more: %v", step, least, upTo(least), upTo(least+1))
			}
		}
		// a sink that the dead node did not have
		heir.sender.(*sender).acked["hbase://h/t"] = 9
		if s.acked = map[string]int64{"kafka://k/t": 800, "postgres://p/d": 800}; upTo(1) {
			t.Error("records are in a sink that the node did not know")
		}
		if sent, err := (&failedNodes{bus: other}).sentBefore(t.Context(), m.id.Node()); sent != nil || err != nil {
			t.Errorf("without sinks: %v", err)
		}
		// after a restart the process does not know the revision of the entry
		again, s2 := sending(t, net, "1")
		s2.acked = map[string]int64{"kafka://k/t": 1000, "postgres://p/d": 1000}
		if err := again.sinks.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(heir.sender.(*sender).acked, "hbase://h/t")
		if !upTo(1000) {
			t.Error("a restarted node does not publish")
		}
		m.sinks.stop()
		m.sinks.stop()
		if text := strings.Join(s.calls, " "); text != "start abort" {
			t.Error(text)
		}
	})
}

// What a node does with the rest of its records depends on why it ends.
func TestTheRestOfTheRecords(t *testing.T) {
	behind := errors.New("3 records are not sent")
	for name, c := range map[string]struct {
		ended  error
		calls  string
		behind bool // the records that are left are an error
	}{
		"done":    {nil, "start finish abort", true},
		"left":    {node.ErrLeft, "start finish abort", true},
		"limit":   {policy.ErrLimit, "start finish abort", true},
		"stopped": {node.ErrStopped, "start finish abort", false},
		"dead":    {node.ErrLost, "start", false},
	} {
		m, s := sending(t, inproc.New(1), "1")
		s.behind = behind
		if err := m.sinks.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := m.sinks.finish(t.Context(), (*stats.Report)(nil), c.ended)
		if !errors.Is(err, c.ended) && c.ended != nil || errors.Is(err, behind) != c.behind {
			t.Errorf("%s: %v", name, err)
		}
		if text := strings.Join(s.calls, " "); text != c.calls {
			t.Errorf("%s: %s, want %s", name, text, c.calls)
		}
		m.sinks.stop()
	}
}
