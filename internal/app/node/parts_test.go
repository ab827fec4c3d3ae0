package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/lab/testmain"
)

func TestALeaseHoldsByBothClocks(t *testing.T) {
	now := time.Now()
	until := now.Add(10 * time.Second)
	for what, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"at once":                {now, true},
		"a little later":         {now.Add(9 * time.Second), true},
		"when it is over":        {now.Add(10 * time.Second), false},
		"suspended for a while":  {testmain.JumpClock(now, 5*time.Second), true},
		"suspended for too long": {testmain.JumpClock(now, 10*time.Second), false},
		"set back by a day":      {testmain.JumpClock(now.Add(9*time.Second), -24*time.Hour), true},
		"set back, and over":     {testmain.JumpClock(now.Add(10*time.Second), -24*time.Hour), false},
	} {
		if got := wait.IsAfter(until, c.now); got != c.want {
			t.Errorf("%s: it holds: %v", what, got)
		}
	}
}

func TestEnvelopes(t *testing.T) {
	msg := envelope("crawl", kindKnownRequest, []byte("data"))
	if kind, data, err := openEnvelope(msg, "crawl"); kind != kindKnownRequest || string(data) != "data" || err != nil {
		t.Errorf("%q came back as %c %q %v", msg, kind, data, err)
	}
	this, v := string(msg[:1]), fmt.Sprint("version ", Protocol)
	for bad, why := range map[string]string{
		"":                                  v,
		"\x01l\x05crawl":                    v,
		string(msg[:5]):                     "truncated",
		this + "l\xff\xff\xff\xff\xff\xff":  "truncated",
		string(envelope("other", 'l', nil)): `crawl "other"`,
	} {
		if _, _, err := openEnvelope([]byte(bad), "crawl"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want something of %s", bad, err, why)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(envelope("crawl", kindKnownRequest, []byte("data")))
	f.Fuzz(func(_ *testing.T, msg []byte) { _, _, _ = openEnvelope(msg, "crawl") })
}

func TestIdentities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.json")
	id, err := OpenIdentity(vfs.OS, file, "one")
	if err != nil || id.Node().Name() != "one" || len(id.Node()) != len("one~01234567") {
		t.Fatal(id, err)
	}
	id.Joined = true
	if err := id.Save(vfs.OS, file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", ""} {
		if again, err := OpenIdentity(vfs.OS, file, name); again != id || err != nil {
			t.Errorf("%+v came back as %+v (%v)", id, again, err)
		}
	}
	if _, err := OpenIdentity(vfs.OS, file, "two"); err == nil {
		t.Error("one folder belongs to two nodes")
	}
	for _, bad := range []string{"", "a.b", "a b", "a/b"} {
		if _, err := OpenIdentity(vfs.OS, filepath.Join(t.TempDir(), "node.json"), bad); err == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}

func TestClocksAreCompared(t *testing.T) {
	now := time.Unix(1e9, 0)
	lease := func(n string, clock time.Time) bus.Entry {
		report, err := json.Marshal(Report{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		l := quorum.Lease{Instance: 1, Report: report}
		return bus.Entry{Key: quorum.LeasePrefix + n, Value: l.Encode(), Revision: 1}
	}
	var c clockCheck
	for i, step := range []struct {
		e     bus.Entry
		want  time.Duration
		apart bool
	}{
		{lease("a", now.Add(-time.Hour)), 0, false}, // possibly an hour old
		{lease("a", now.Add(time.Second)), time.Second, false},
		{lease("a", now.Add(time.Hour)), 0, false}, // already compared
		{lease("b", now), 0, false},
		{lease("b", now.Add(-time.Minute)), -time.Minute, true},
		{lease("b", now.Add(-time.Minute)), 0, false}, // already reported
		{bus.Entry{Key: "table"}, 0, false},
	} {
		if _, ahead, apart := c.renewed(step.e, now); apart != step.apart || ahead != step.want {
			t.Errorf("step %d: %v ahead, apart %v; want %v, %v", i, ahead, apart, step.want, step.apart)
		}
	}
}
