package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/bus/bustest"
)

// TestTrimmed: trimmed entries are deleted from the servers, and readers accept only their absence.
func TestTrimmed(t *testing.T) {
	t.Parallel()
	c := open(t, Config{Crawl: "trim", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir(),
		Timings: Timings{Request: time.Second}})
	b := inTurn(c)(t, "a~1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var numbers []uint64
	last := uint64(0)
	for range 10 {
		n, err := b.Append(ctx, "log", []byte("x"), last)
		must(t, err)
		last, numbers = n, append(numbers, n)
	}
	must(t, b.Trim(ctx, "log", numbers[4]))
	must(t, b.Trim(ctx, "log", numbers[2]))
	if n := countStored(t, c, c.names.log("log")); n != 6 {
		t.Errorf("%d entries are left of a log of 10 of which 4 were trimmed", n)
	}
	if n := countStored(t, c, c.names.trim("log")); n != 1 {
		t.Errorf("%d notes about a log that was trimmed twice", n)
	}
	for i, after := range append([]uint64{0}, numbers...) { // from any position
		var got []uint64
		must(t, b.Read(ctx, "log", after, func(n uint64, _ []byte) error { got = append(got, n); return nil }))
		if want := numbers[max(4, i):]; !slices.Equal(got, want) {
			t.Errorf("after %d of %d Read tells %d, want %d", after, numbers, got, want)
		}
	}

	stream, err := c.js.Stream(ctx, c.names.logs().name)
	must(t, err)
	must(t, stream.DeleteMsg(ctx, numbers[6]))
	if err := b.Read(ctx, "log", 0, func(uint64, []byte) error { return nil }); !errors.Is(err, bus.ErrUnavailable) {
		t.Errorf("of a log with a hole Read says %v", err)
	}
	must(t, b.Drop(ctx, "log"))
	if n := countStored(t, c, c.names.trim("log")); n != 0 {
		t.Errorf("%d notes about a log that was dropped", n)
	}
}

// A server that lacks an entry may still get it: a log that was not trimmed does not end before it.
func TestWhatIsMissingIsNotTheEnd(t *testing.T) {
	t.Parallel()
	c := open(t, Config{Crawl: "whole", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir(),
		Timings: Timings{Request: 500 * time.Millisecond}})
	b := inTurn(c)(t, "a~1")
	stream, err := c.js.Stream(t.Context(), c.names.logs().name)
	must(t, err)
	for _, missing := range []int{0, 2} {
		log, last, numbers := fmt.Sprint("log", missing), uint64(0), []uint64(nil)
		for range 4 {
			n, err := b.Append(t.Context(), log, []byte("x"), last)
			must(t, err)
			last, numbers = n, append(numbers, n)
		}
		must(t, stream.DeleteMsg(t.Context(), numbers[missing]))
		var got []uint64
		err := b.Read(t.Context(), log, 0, func(n uint64, _ []byte) error { got = append(got, n); return nil })
		if !errors.Is(err, bus.ErrUnavailable) || !slices.Equal(got, numbers[:missing]) {
			t.Errorf("of %d without number %d Read tells %d, %v", numbers, numbers[missing], got, err)
		}
	}
}

// An answer with a lost part is not taken for a complete one.
func TestAnAnswerWithAHole(t *testing.T) {
	t.Parallel()
	c := open(t, Config{Crawl: "hole", Listen: bustest.Addresses(t, 1)[0], Dir: t.TempDir()})
	for answer, whole := range map[string]bool{"0>3 3>5 end5": true, "404": true, "end0": true, "0>3 end5": false,
		"3>5 end5": false, "0>3 5>7 end7": false, "0>3 404": false} {
		fakes := stream{name: "fake"}
		fake, err := c.conn.Subscribe("$JS.API.DIRECT.GET."+fakes.name, func(m *nats.Msg) {
			for part := range strings.FieldsSeq(answer) {
				r := &nats.Msg{Subject: m.Reply, Header: nats.Header{}}
				if previous, number, is := strings.Cut(part, ">"); is {
					r.Header = nats.Header{headPrevious: {previous}, headNumber: {number}}
				} else if last, is := strings.CutPrefix(part, "end"); is {
					r.Header = nats.Header{"Status": {"204"}, headPrevious: {last}}
				} else {
					r.Header = nats.Header{"Status": {part}}
				}
				if err := c.conn.PublishMsg(r); err != nil {
					t.Error(err)
				}
			}
		})
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = c.request(ctx, fakes, query{Next: "x", Batch: 9}, func(stored) error { return nil })
		cancel()
		if (err == nil) != whole || !whole && !errors.Is(err, errIncomplete) {
			t.Errorf("%s: %v", answer, err)
		}
		must(t, fake.Unsubscribe())
	}
}

// countStored returns the number of a server's messages of a subject.
func countStored(t *testing.T, c *Cluster, subject string) uint64 {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), c.names.logs().name)
	must(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(subject))
	must(t, err)
	return info.State.Subjects[subject]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
