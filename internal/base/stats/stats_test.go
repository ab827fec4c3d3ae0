package stats

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	c := New()
	c.Visited(Visit{Host: "a", Status: 200, Type: "text/html", Bytes: 1000, Took: time.Second})
	c.Visited(Visit{Host: "a", Status: 404, Type: "text/html", Bytes: 500, Took: 3 * time.Second, Duplicate: true,
		LinksCut: true})
	c.Visited(Visit{Host: "s", Status: 200, Type: "text/html", NeedsScript: true})
	c.Visited(Visit{Host: "b", Failure: "dns"})
	c.Skipped("robots")
	c.OffHost("c", 5)
	c.Found(7)
	var r Report
	r.Crawl, r.Ended = "test", "done"
	r.Started, r.Stopped = time.Unix(0, 0), time.Unix(2, 0)
	r.Fill(c.Snapshot(), 1, 500)
	if r.Pages != 3 || r.PagesThisRun != 2 || r.PagesPerSecond != 1 || r.BytesPerSecond != 500 || r.Failed != 1 ||
		r.Duplicates != 1 {
		t.Errorf("%+v", r)
	}
	if len(r.Slowest) != 2 || r.Slowest[0] != (SlowHost{"a", 2, 2}) {
		t.Errorf("slowest %v", r.Slowest)
	}
	var text strings.Builder
	r.Print(&text)
	for _, want := range []string{"test: done after 2s", "200 2, 404 1", "dns 1", "robots 1", "1 other host", "a 2.00s",
		"links cut 1 page with more links", "script    1 page shows nothing without JavaScript"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}

func TestKeysFromTheNetworkAreBounded(t *testing.T) {
	c := New()
	for i := range maxKeys + 500 {
		c.OffHost(fmt.Sprint("host", i), 1)
	}
	s := c.Snapshot()
	if len(s.Off) != maxKeys+1 || s.Off[others] != 500 {
		t.Errorf("%d keys, %d others", len(s.Off), s.Off[others])
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 27_400_000: "27.4 MB", 5e15: "5.0 PB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{Count(0, "URLs"), "0 URLs"}, {Count(1, "URLs"), "1 URL"}, {Count(2, "URLs"), "2 URLs"},
		{Count(1, "batches"), "1 batch"},
		{Count(1, "URLs waiting"), "1 URL waiting"}, {Count(1, "hosts", "other"), "1 other host"},
		{Count(int64(1), "bytes"), "1 byte"},
		{Unit(1, "lines in index.cdxj"), "line in index.cdxj"}, {Either(1, "it", "them"), "it"},
		{Either(0, "it", "them"), "them"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
