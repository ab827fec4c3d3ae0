package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/base/settings"
	"kumo/internal/lab/synthweb"
)

// What kumo start was told arrives at a node, beside what the node was told itself.
func TestSettingsTravel(t *testing.T) {
	o := &options{}
	flags := crawlFlags(o)
	args := []string{"--delay", "3s", "--exclude", "a,b", "--exclude", "c", "--canon", "tracking,sort", "--format",
		"jsonl", "--ignore", "nofollow", "-d", "2"}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.readStart(t.Context(), flags, []string{"http://a.example/"}); err != nil {
		t.Fatal(err)
	}
	shared := o.shared(flags)
	if i := slices.IndexFunc(shared, func(s settings.Setting) bool {
		return hasScope(s.Key, setting.Node) ||
			s.Key == setting.SeedsKey
	}); i >= 0 {
		t.Errorf("%s is shared", shared[i].Key)
	}
	n := &options{}
	given := crawlFlags(n)
	if err := given.Parse([]string{"--memory", "64MB", "-c", "7", "--password", "x", "--user", "u", "--header",
		"Authorization: a, b"}); err != nil {
		t.Fatal(err)
	}
	j := &job.Job{Name: "news", Dir: "d"}
	if err := n.settleNode(given, j, shared); err != nil {
		t.Fatal(err)
	}
	if j.Frontier.Delay != 3*time.Second || len(j.Crawl.Exclude) != 2 || j.Crawl.Exclude[0].String() != "a,b" ||
		j.Crawl.Canon.String() != "tracking,sort" ||
		!slices.Equal(j.Formats, []string{"jsonl"}) || j.Crawl.Depth != 2 || j.Crawl.Ignore.Names() == nil {
		t.Errorf("of the crawl: %+v", j)
	}
	if j.Memory != 64e6 || j.Frontier.Hosts != 7 || j.Fetch.User != "u" || j.Fetch.Header.Get("Authorization") != "a, b" ||
		j.Name != "news" || j.Dir != "d" {
		t.Errorf("of the machine: %+v", j)
	}
	for _, s := range j.Settings {
		if s.Key == "password" && s.Values[0] != settings.Redacted {
			t.Error("a password would be written down")
		}
	}
}

func TestServersOf(t *testing.T) {
	join := []string{"a:1", "b:1", "c:1", "d:1"}
	for _, c := range []struct {
		listen string
		join   []string
		n      int
		want   string // "!": an error
	}{
		{"a:1", nil, 0, "a:1"}, {"a:1", nil, 1, "a:1"}, {"", join[:1], 0, ""}, {"", join, 0, ""}, {"a:1", join, 0, "a:1"},
		{"b:1", join, 0, ""},
		{"b:1", join, 3, "a:1 b:1 c:1"}, {"", join, 1, "a:1"}, {"", join, 5, "!"}, {"a:1", nil, 3, "!"}, {"", join, 2, "!"},
		{"", join, -1, "!"},
	} {
		got, err := serversOf(c.listen, c.join, c.n)
		if text := strings.Join(got, " "); text != c.want && (err == nil || c.want != "!") ||
			(err != nil) != (c.want == "!") {
			t.Errorf("--listen %q --join %v --servers %d: %q, %v; want %q", c.listen, c.join, c.n, text, err, c.want)
		}
	}
}

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
	printCluster(&b, c, 0)
	const want = `news: running since 2026-11-22T09:00:00Z, 5 nodes, epoch 7 being settled: hosts change owner
  pages    /s  hosts  waiting  known  outbox  in flight  unshipped  slot    heard  node
   1234  12.3      5        6      7       8          9     1.5 kB    12   1s ago  a
      0   0.0      0        0      0       0          0        0 B     -  44s ago  b (dead)
      0   0.0      0        0      0       0          0        0 B     -        -  c (joining)
      0   0.0      0        0      0       0          0        0 B     3   0s ago  d idle
      0   0.0      0        0      0       0          0        0 B     4  60s ago  e
   1234   0.0      0        0      0       0          0        0 B                 all
note: a reaches nothing on the web for 12 s, waits, and fetches nothing until it does: dial: refused
note: b~1 was given up: the others take over what it had
note: the clock of d is 60 s ahead of this machine's: let all machines ask a time server
note: d has lost all other nodes 7 s ago: until one answers it goes on alone
note: d has ended 2 requests later than its lease
note: e was not heard of for 60 s: it is dead or cut off, or its clock is behind this machine's
note: the nodes are of several versions of kumo: 0.1.0, 0.2.0
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	printCluster(&b, &inspect.Cluster{Crawl: "news", State: "waiting"}, 0)
	if got := b.String(); got != "news: waiting, 0 nodes\n" {
		t.Errorf("of an empty one: %q", got)
	}
}

func TestDemoFaults(t *testing.T) {
	good := synthweb.Score{Truth: 5, Covered: 5, Repeats: 2}
	good.MostInFlight.Value = 1
	good.LeastGap.Value, good.LeastGap.Host = 290*time.Millisecond, "a"
	if f := demoFaults(&good, 300*time.Millisecond); len(f) > 0 {
		t.Errorf("a good score has faults: %v", f)
	}
	for _, spoil := range []func(*synthweb.Score){
		func(s *synthweb.Score) { s.Missing = 1 },
		func(s *synthweb.Score) { s.Beyond = 1 },
		func(s *synthweb.Score) { s.Unknown = 1 },
		func(s *synthweb.Score) { s.Forbidden = 1 },
		func(s *synthweb.Score) { s.BeforeRobots = 1 },
		func(s *synthweb.Score) { s.Hasty = 1 },
		func(s *synthweb.Score) { s.Impatient = 1 },
		func(s *synthweb.Score) { s.MostInFlight.Value = 2 },
		func(s *synthweb.Score) { s.LeastGap.Value = 200 * time.Millisecond },
	} {
		bad := good
		spoil(&bad)
		if len(demoFaults(&bad, 300*time.Millisecond)) != 1 {
			t.Errorf("%+v has faults %v, want one", bad, demoFaults(&bad, 300*time.Millisecond))
		}
	}
}

// Where a terminal is narrow columns are left out, and names stay whole.
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
	if got := rows("abcdef\nabc\n\n", 3); got != 4 {
		t.Errorf("%d rows, want 4", got)
	}
}
