package text

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/app/inspect"
)

func TestClusterForPeople(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	c := &inspect.Cluster{Crawl: "news", State: "running", Since: at, Time: at, Epoch: 7, Nodes: []inspect.Node{
		{Node: "a~1", Name: "a", Is: inspect.NodeMember, Slot: 12, Age: 1.4, Clock: at, Version: "0.1.0",
			CutOff: 12, CutOffWhy: "dial: refused",
			Load: inspect.Load{Pages: 1234, Rate: 12.34, Hosts: 5, Waiting: 6, Known: 7, Outbox: 8, InFlight: 9, Lag: 1500}},
		{Node: "b~1", Name: "b", Is: inspect.NodeDead, Slot: -1, Age: 44, Clock: at, Version: "0.1.0"},
		{Node: "c~1", Name: "c", Is: inspect.NodeJoining, Slot: -1},
		{Node: "d~1", Name: "d", Is: inspect.NodeMember, Slot: 3, Age: -60, Clock: at, Version: "0.2.0", Idle: true,
			Slips: 2, Peering: &inspect.Peering{Alone: 7}},
		{Node: "e~1", Name: "e", Is: inspect.NodeMember, Slot: 4, Age: 60, Clock: at, Version: "0.2.0"},
	}, Totals: inspect.Load{Pages: 1234}}
	var b strings.Builder
	Cluster(&b, c, "", 0)
	const want = `news: running since 2026-11-22T09:00:00Z, 5 nodes, epoch 7 not settled: hosts change owner
  pages    /s  hosts  waiting  known  outbox  in flight  unshipped  slot    heard  node
   1234  12.3      5        6      7       8          9     1.5 kB    12   1s ago  a
      0   0.0      0        0      0       0          0        0 B     -  44s ago  b (dead)
      0   0.0      0        0      0       0          0        0 B     -        -  c (joining)
      0   0.0      0        0      0       0          0        0 B     3   0s ago  d idle
      0   0.0      0        0      0       0          0        0 B     4  60s ago  e
   1234   0.0      0        0      0       0          0        0 B                 all
note: a has reached no host on the web for 12 s, and fetches nothing until it does: dial: refused
note: b~1 was declared dead: the other nodes take over its hosts
note: the clock of d is 60 s ahead of this machine's: synchronize the clocks of all machines (NTP)
note: d lost contact with all other nodes 7 s ago and continues alone until one answers
note: d had 2 requests that ended after its lease
note: no report from e for 60 s: it is dead or disconnected, or its clock is behind this machine's
note: the nodes run several versions of kumo: 0.1.0, 0.2.0
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	Cluster(&b, &inspect.Cluster{Crawl: "news", State: "waiting"}, "", 0)
	if got := b.String(); got != "news: waiting, 0 nodes\n" {
		t.Errorf("of an empty one: %q", got)
	}
}

// On a narrow terminal columns are omitted, and names are not cut.
func TestNamesAreNotCut(t *testing.T) {
	name := strings.Repeat("long-name-", 6)
	for _, hub := range []bool{false, true} {
		c := &inspect.Cluster{Crawl: "news", State: "running", Gone: inspect.Gone{Nodes: 1, Pages: 5}}
		for _, n := range []string{name + "1", "b"} {
			one := inspect.Node{Node: n + "~1", Name: n, Is: inspect.NodeLeaving, Load: inspect.Load{Pages: 1234567,
				Known: 123456789}}
			if hub {
				one.Facts = &inspect.Facts{Owned: 3}
			}
			c.Nodes = append(c.Nodes, one)
		}
		for width := range 200 {
			var b strings.Builder
			printNodes(&b, c, width)
			got := b.String()
			if !strings.Contains(got, name+"1 (leaving)\n") || !strings.Contains(got, "1234567") ||
				!strings.Contains(got, "(1 that has gone)\n") {
				t.Fatalf("in %d columns:\n%s", width, got)
			}
			if most := widest(got); width >= 100 && most > width {
				t.Fatalf("in %d columns %d are used:\n%s", width, most, got)
			}
		}
	}
	if got := Rows("abcdef\nabc\n\n", 3); got != 4 {
		t.Errorf("%d rows, want 4", got)
	}
}

func TestBrowsersOfNodes(t *testing.T) {
	c := &inspect.Cluster{Nodes: []inspect.Node{{Name: "a", Browser: "/usr/bin/chromium"}, {Name: "b"},
		{Name: "c", Is: inspect.NodeDead}}}
	if got := browserLine(c); got != "" {
		t.Errorf("of a crawl that renders nothing: %q", got)
	}
	for _, all := range []map[string][]string{{"render": {"auto"}}, {"override": {"{match: a.test, render: always}"}}} {
		c.Settings = all
		const want = "browsers: 1 of 2 nodes (a chromium); none on b, which cannot take part in a crawl with --render: "
		if got := browserLine(c); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %q", all, got)
		}
	}
}
