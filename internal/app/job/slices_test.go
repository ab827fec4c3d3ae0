package job

import (
	"testing"
	"time"
)

// TestPoliteSlices: politeness always allows the default number of slices.
func TestPoliteSlices(t *testing.T) {
	for _, c := range []struct {
		delay   time.Duration
		perHost int
		pages   int64
		want    int
	}{
		{time.Second, 0, 0, 1},
		{time.Second, 1, 0, 1},
		{time.Second, 8, 0, 8},
		{time.Second, 1 << 20, 0, 4096},
		{0, 1, 0, 256},
		{0, 8, 0, 256},
		{0, 1, 10, 1},
		{time.Second, 8, 10, 1},
	} {
		j := &Job{}
		j.Frontier.Delay, j.Frontier.PerHost, j.Crawl.PagesPerHost = c.delay, c.perHost, c.pages
		got := j.PoliteSlices()
		if got != c.want {
			t.Errorf("%+v: %d slices", c, got)
		}
		j.Frontier.Slices = got
		if err := j.CheckSlices(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
