package sink_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
)

func TestNewest(t *testing.T) {
	a, b, c := sinktest.Record(1), sinktest.Record(1), sinktest.Record(2)
	b.Time, b.Title = a.Time.Add(time.Second), "newer"
	d := b
	d.Title = "as new, and later"
	got := sink.Newest([]sink.Record{b, c, a, d})
	if len(got) != 2 || got[0].Title != d.Title || got[1].URL != c.URL {
		t.Errorf("%+v", got)
	}
}

func TestIDsAreShortAndDiffer(t *testing.T) {
	long := "http://a.test/" + strings.Repeat("é", 1000)
	if sink.ID("http://a.test/") != "http://a.test/" || len(sink.ID(long)) > 512 || sink.ID(long) == sink.ID(long+"x") {
		t.Error(sink.ID(long), sink.ID(long+"x"))
	}
}

func TestPasswordsAreHidden(t *testing.T) {
	for _, at := range []string{"postgres://me:hush@h/db?table=t", "postgres://h/db?user=me&password=hush",
		"postgres://h/db?sslPassword=hush", "kafka://me:hush@h/t"} {
		if got := sink.Redact(at); strings.Contains(got, "hush") || !strings.Contains(got, "xxxxx") {
			t.Errorf("%s is said as %s", at, got)
		}
	}
	if at := "postgres://me@h/db?table=b&sslmode=off"; sink.Redact(at) != at {
		t.Errorf("%s is said as %s", at, sink.Redact(at))
	}
}

// A clock waits without delay.
type clock struct {
	now    time.Time
	pauses []time.Duration
}

func (c *clock) wait(_ context.Context, d time.Duration) error {
	c.now, c.pauses = c.now.Add(d), append(c.pauses, d)
	return nil
}

func TestRetry(t *testing.T) {
	m, c := &sinktest.Memory{Fails: 12}, &clock{}
	r := sink.Retry{Sink: m, Wait: c.wait, Now: func() time.Time { return c.now }}
	batch := []sink.Record{sinktest.Record(1), sinktest.Record(2), sinktest.Record(3)}
	if err := r.Put(t.Context(), batch); err != nil || len(m.Records()) != 3 || len(c.pauses) != 12 {
		t.Errorf("%v: %d records after %v", err, len(m.Records()), c.pauses)
	}
	for i := 1; i < len(c.pauses); i++ {
		if c.pauses[i] < c.pauses[i-1] || c.pauses[i] > 30*time.Second {
			t.Errorf("pauses %v", c.pauses)
		}
	}
	m.Down, r.MaxTime = sinktest.ErrFailed, time.Minute
	begin := c.now
	if err := r.Put(t.Context(), batch); !errors.Is(err, sinktest.ErrFailed) || c.now.Sub(begin) > time.Minute {
		t.Errorf("%v after %v", err, c.now.Sub(begin))
	}
	lasting := errors.New("no such table")
	m.Down, c.pauses = lasting, nil
	if err := r.Put(t.Context(), batch); !errors.Is(err, lasting) || c.pauses != nil {
		t.Errorf("%v after %v", err, c.pauses)
	}
}

func TestTemporary(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("no"), false}, {fmt.Errorf("put: %w", sinktest.ErrFailed), true},
		{fmt.Errorf("put: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
	} {
		if got := sink.IsTemporary(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestURLsLoseTheirPasswords(t *testing.T) {
	for _, at := range []string{"postgres://me:hush@h/db", "postgres://me:hush@h:port/db", "postgres://me:hush%@h/db",
		"x://a:hush@%zz"} {
		_, err := sink.Parse(at)
		if strings.Contains(sink.Redact(at), "hush") || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", sink.Redact(at), err)
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add("a\x00b", strings.Repeat("ä", sink.MaxText), `{"a":"\u0000"}`)
	f.Fuzz(func(t *testing.T, title, text, values string) {
		r := sink.Record{Title: title, Text: text, Fields: []sink.Fields{{Rule: "r", Values: []byte(values)}}}
		r.Fit()
		again := r
		again.Fit()
		if strings.ContainsRune(r.Title+r.Text, 0) || len(r.Text) > sink.MaxText || again.Title != r.Title ||
			again.Text != r.Text {
			t.Errorf("%q %q", r.Title, r.Text)
		}
	})
}
