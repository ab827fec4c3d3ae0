package synthweb

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"
)

var (
	one = netip.MustParseAddr("10.0.0.1")
	two = netip.MustParseAddr("10.0.0.2")
)

// made returns a log of requests given as host, client, arrival and end in milliseconds.
func made(requests ...[4]any) (l Log) {
	zero := time.Unix(1000, 0)
	at := func(ms any) time.Time { return time.UnixMilli(zero.UnixMilli() + int64(ms.(int))) }
	for i, r := range requests {
		l = append(l, Request{Host: r[0].(string), Client: r[1].(netip.Addr), At: at(r[2]), End: at(r[3]), Status: 200,
			Whole: true, Target: fmt.Sprint("/", i)})
	}
	return l
}

func TestMeetings(t *testing.T) {
	l := made([4]any{"a", one, 0, 50}, [4]any{"b", two, 10, 20}, [4]any{"a", two, 40, 45}, [4]any{"a", one, 55, 60},
		[4]any{"b", two, 30, 40},
		[4]any{"a", one, 70, 80}, [4]any{"b", two, 49, 60})
	var got []string
	for _, m := range l.Overlaps(10 * time.Millisecond) {
		got = append(got, fmt.Sprint(m.Request.Host, m.Before.Target, m.Request.Target, " ", m.Gap))
	}
	if want := []string{"a/0/2 0s", "a/0/3 5ms", "b/4/6 9ms"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStall(t *testing.T) {
	l := made([4]any{"a", one, 100, 110}, [4]any{"b", one, 150, 160}, [4]any{"a", one, 400, 410},
		[4]any{"a", one, 500, 510})
	zero := time.Unix(1000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct{ from, to, began, longest int }{{0, 500, 150, 250}, {0, 1000, 500, 500},
		{160, 300, 160, 140}, {90, 160, 100, 50}} {
		if began, d := l.Stall(at(c.from), at(c.to)); !began.Equal(at(c.began)) ||
			d != time.Duration(c.longest)*time.Millisecond {
			t.Errorf("from %d to %d: %v from %v, want %d from %d", c.from, c.to, d, began.Sub(zero), c.longest, c.began)
		}
	}
}

func TestRepeats(t *testing.T) {
	l := made([4]any{"a", one, 0, 90}, [4]any{"a", two, 20, 30}, [4]any{"a", one, 40, 50}, [4]any{"b", one, 40, 50},
		[4]any{"a", one, 95, 99}, [4]any{"a", one, 100, 110})
	for i := range l {
		l[i].Target = "/"
	}
	l[2].Whole, l[4].Status = false, 404
	var got []time.Duration
	for _, r := range l.Repeats() {
		got = append(got, r.At.Sub(time.Unix(1000, 0)))
	}
	// The order of the responses counts, not the order of the requests.
	if want := []time.Duration{0, 100 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLogOfAServer(t *testing.T) {
	on := netip.MustParseAddr("127.0.0.1")
	web := New(Clean(1, 3, 30))
	s, err := Serve(t.Context(), web, ServeOptions{On: []netip.Addr{on}, Log: true, DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Addr(web.Host(2)).Addr(); got != on {
		t.Errorf("a host is on %v", got)
	}
	for range 2 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr(web.Host(0)).String()+"/", nil)
		req.Host = web.Host(0)
		answer, err := http.DefaultClient.Do(req)
		if err != nil || answer.StatusCode != 200 {
			t.Fatal(answer, err)
		}
		answer.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	s.Close()
	l := s.Log()
	if len(l) != 2 {
		t.Fatalf("log: %+v", l)
	}
	r := l[0]
	if r.Host != web.Host(0) || r.Target != "/" || r.Client != on || r.Status != 200 || r.End.Before(r.At) ||
		slices.ContainsFunc(l, func(q Request) bool { return q.Client != on }) {
		t.Errorf("log: %+v", l)
	}
	without, err := Serve(t.Context(), web, ServeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if without.Log() != nil {
		t.Error("a log that nobody wanted")
	}
}
