// Package sinktest checks that sinks fulfill the contract of package sink, and provides a sink in memory.
package sinktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
)

// A Suite is a sink to be tested.
type Suite struct {
	// Open opens the sink at an address: Addr or a proxy that injects faults. Each place is a new table, topic or
	// index.
	Open func(ctx context.Context, addr, place string) (sink.Sink, error)
	Addr string // host and port
	// Versions is true if an older record never replaces a newer one.
	Versions bool
	// Fields queries the server for the fields of a record: a JSON list of rules and values.
	Fields func(t *testing.T, place, url string) []byte
	// Secret is part of Open's URL, and must not be in any error.
	Secret string
}

// Server returns a server's URL from the environment. Without it the test is skipped.
func Server(t testing.TB, variable string) string {
	t.Helper()
	at := os.Getenv(variable)
	if at == "" && os.Getenv("KUMO_TEST_SINKS") != "" {
		t.Fatalf("%s is not set", variable)
	}
	if at == "" {
		t.Skipf("SKIPPED: %s is not set; .ci/sinks/testbed DIR go test ./internal/archive/sink/... starts a server", variable)
	}
	return at
}

var day = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)

// Record returns the i-th test record.
func Record(i int) sink.Record {
	host := fmt.Sprintf("www%d.example.org", i%7)
	return sink.Record{URL: fmt.Sprintf("https://%s/page-%05d/?q=ä&r=%%20", host, i), Host: host, Status: 200,
		Time: day.Add(time.Duration(i) * time.Second), Type: "text/html", Charset: "utf-8", Lang: "de",
		Title: "Straße “Nr. 1”",
		Bytes: 4000, Digest: "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Links: 3, Depth: i%4 - 1,
		Kind: "article", Text: "Ein Text.\nUnd noch einer.", Comments: "Gut.",
		Fields: []sink.Fields{{Rule: "offer", Values: json.RawMessage(`{"price":12.5,"tags":["a","b"]}`)}}}
}

func records(from, to int) (all []sink.Record) {
	for i := from; i < to; i++ {
		all = append(all, Record(i))
	}
	return all
}

// Contents returns the newest version of each URL in a sink, and how often the sink lists it.
func Contents(t testing.TB, s sink.Sink) (versions map[string]time.Time, times map[string]int) {
	t.Helper()
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	versions, times = map[string]time.Time{}, map[string]int{}
	err := s.(sink.Lister).Each(t.Context(), func(url string, at time.Time) error {
		if times[url]++; at.After(versions[url]) {
			versions[url] = at
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return versions, times
}

func same(t testing.TB, s sink.Sink, want []sink.Record, once bool) {
	t.Helper()
	versions, times := Contents(t, s)
	for i := range want {
		r := &want[i]
		if got := versions[r.URL]; !got.Equal(r.Time) {
			t.Errorf("%.80s is of %v, want %v", r.URL, got, r.Time)
		}
		if n := times[r.URL]; once && n != 1 {
			t.Errorf("%.80s is there %d times", r.URL, n)
		}
	}
	if len(versions) != len(want) {
		t.Errorf("there are %d records, want %d", len(versions), len(want))
	}
}

// Run runs the contract tests.
func Run(t *testing.T, m Suite) {
	openAt := func(t *testing.T, place string) sink.Sink {
		t.Helper()
		s, err := m.Open(t.Context(), m.Addr, place)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	open := func(t *testing.T) sink.Sink {
		t.Helper()
		s := openAt(t, place(t))
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	put := func(t *testing.T, s sink.Sink, batch []sink.Record) {
		t.Helper()
		if err := s.Put(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("repeats", func(t *testing.T) {
		s := open(t)
		put(t, s, nil)
		put(t, s, records(0, 120))
		put(t, s, records(0, 120))
		put(t, s, append(records(100, 130), records(110, 130)...))
		same(t, s, records(0, 130), m.Versions)
	})
	t.Run("fields", func(t *testing.T) {
		at := place(t)
		s := openAt(t, at)
		batch := records(0, 3)
		batch[1].Fields = append(batch[1].Fields, sink.Fields{Rule: "person",
			Values: json.RawMessage(`{"name":"Ä \"B\"","born":null}`)})
		put(t, s, batch)
		if err := errors.Join(s.Flush(t.Context()), s.Close()); err != nil {
			t.Fatal(err)
		}
		var got, want any
		data, _ := json.Marshal(batch[1].Fields)
		if err := errors.Join(json.Unmarshal(m.Fields(t, at, batch[1].URL), &got), json.Unmarshal(data, &want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("the fields are %v, want %v", got, want)
		}
	})
	t.Run("versions", func(t *testing.T) {
		s := open(t)
		old, now := records(0, 40), records(0, 40)
		for i := range now {
			now[i].Time, now[i].Title = now[i].Time.Add(time.Hour), ""
		}
		put(t, s, append(append([]sink.Record{}, now[:10]...), old[:10]...)) // in one batch
		put(t, s, now)
		put(t, s, old)
		same(t, s, now, m.Versions)
	})
	t.Run("opened again", func(t *testing.T) {
		at := place(t)
		for i := range 2 {
			s := openAt(t, at)
			put(t, s, records(i*10, i*10+15))
			if same(t, s, records(0, i*10+15), false); s.Close() != nil {
				t.Error("it does not close")
			}
		}
	})
	t.Run("odd records", func(t *testing.T) {
		s := open(t)
		var odd []sink.Record
		for i, change := range []func(*sink.Record){
			func(r *sink.Record) { r.URL += "/" + strings.Repeat("x%2F", 500) },
			func(r *sink.Record) { r.URL += "/" + strings.Repeat("x%2F", 500) + "y" },
			func(r *sink.Record) { r.Title, r.Text = "a\x00b\xff", "\x00\r\n\"\\\u2028" },
			func(r *sink.Record) { r.Text = strings.Repeat("\x01\u2028\"", sink.MaxText) },
			func(r *sink.Record) { r.Fields[0].Values = json.RawMessage(`{"a\u0000":"\u0000","b":{"c":[null,{}]}}`) },
			func(r *sink.Record) { r.Fields, r.Lang, r.Type, r.Digest, r.Depth = nil, "", "", "", -1 },
			func(r *sink.Record) { r.URL, r.Host = "http://[2001:db8::1]:8080/?a=/b:c", "[2001:db8::1]:8080" },
			func(r *sink.Record) { r.URL = "http://192.0.2.7/" },
			func(r *sink.Record) { r.Time = time.Date(2026, 1, 2, 3, 4, 5, 999e6, time.FixedZone("", 3600)) },
		} {
			r := Record(i)
			change(&r)
			r.Fit()
			odd = append(odd, r)
		}
		put(t, s, odd)
		put(t, s, odd)
		same(t, s, odd, m.Versions)
	})
	t.Run("failures", func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		way, cuts := FlakyProxy(t, m.Addr, seed)
		at := place(t)
		direct := openAt(t, at) // creates the table, topic or index
		defer direct.Close()    //nolint:errcheck // it is only asked
		retry := &sink.Retry{Now: time.Now, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
		retry.Failed = func(err error, _ time.Duration) {
			if m.Secret != "" && strings.Contains(err.Error(), m.Secret) {
				t.Errorf("the error has the password: %v", err)
			}
		}
		err := retry.Do(t.Context(), func() (err error) { retry.Sink, err = m.Open(t.Context(), way, at); return err })
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			if err := retry.Put(t.Context(), records(i*20, i*20+20)); err != nil {
				t.Fatal(err)
			}
		}
		if retry.Close() != nil || cuts() == 0 {
			t.Error("nothing has failed")
		}
		same(t, direct, records(0, 800), m.Versions)
	})
	t.Run("unreachable", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		s, err := m.Open(t.Context(), l.Addr().String(), place(t))
		if err == nil {
			err = s.Put(t.Context(), records(0, 1))
		}
		CheckError(t, err, m.Secret, l.Addr().String())
		if !sink.IsTemporary(err) {
			t.Errorf("%v is taken for lasting", err)
		}
	})
}

// CheckError checks that an error contains names and advice, and no secret.
func CheckError(t testing.TB, err error, secret string, names ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
	if secret != "" && strings.Contains(err.Error()+advice.Of(err), secret) {
		t.Errorf("%q has the password", err)
	}
	if advice.Of(err) == "" && !advice.IsUsage(err) {
		t.Errorf("%q says nothing of what to do", err)
	}
}

var places struct {
	sync.Mutex
	n int
}

func place(t *testing.T) string {
	places.Lock()
	defer places.Unlock()
	places.n++
	return fmt.Sprintf("kumo_%d_%d", time.Now().UnixNano()%1e9, places.n)
}

// FlakyProxy is a proxy to a server that refuses and cuts connections at random. cuts returns how often it did.
func FlakyProxy(t testing.TB, to string, seed uint64) (addr string, cuts func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(seed, 0))
	var (
		all sync.WaitGroup
		cut atomic.Int64
	)
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			cut.Add(1)
			if dice.IntN(4) == 0 {
				c.Close()
				continue
			}
			there, back := 4_000+dice.Int64N(60_000), 2_000+dice.Int64N(30_000)
			all.Go(func() { relay(c, to, there, back) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String(), func() int64 { return cut.Load() - 1 } // the last one was closed by the client
}

// relay forwards limited numbers of bytes in both directions, and then closes both connections.
func relay(c net.Conn, to string, there, back int64) {
	defer c.Close()
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer s.Close()
	var both sync.WaitGroup
	both.Go(func() { _, err = io.CopyN(s, c, there); s.Close(); c.Close() })
	both.Go(func() { _, err := io.CopyN(c, s, back); _ = errors.Is(err, io.EOF); s.Close(); c.Close() })
	both.Wait()
}
