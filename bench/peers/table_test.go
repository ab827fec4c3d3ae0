package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.values, got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestRatiosAreOfPairs(t *testing.T) {
	run := func(pages int, cpu time.Duration) result {
		r := result{used: used{cpu: cpu}}
		r.score.Covered = pages
		return r
	}
	// The machine was half as fast in the second round; each ratio is still 2.
	kumo := []result{run(100, time.Second), run(100, 2*time.Second)}
	peer := []result{run(100, 2*time.Second), run(50, 2*time.Second), run(1, time.Second)}
	if got := ratios(kumo, peer, result.perCPU); len(got) != 2 || got[0] != 2 || got[1] != 2 {
		t.Errorf("%v", got)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{{nil, "-"}, {[]float64{2, 2.0001}, "2.00"}, {[]float64{1, 3, 2000}, "3.00 (1.00-2000)"},
		{[]float64{0.1234, 12.34, 123.4}, "12.3 (0.123-123)"}} {
		if got := spread(c.values); got != c.want {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
}

func TestEachPeerIsToldWhatToDo(t *testing.T) {
	j := job{web: &web{seed: "http://127.77.0.1:8080/", flags: []string{"--allow-private"}}, dir: t.TempDir(),
		concurrency: 73}
	for _, p := range append(peers, kumoPeer("kumo")) {
		line := strings.Join(p.command("/bin/"+p.name, j), " ")
		if !strings.HasPrefix(line, "/bin/") && p.name != "kumo" || !strings.Contains(line, " 73") ||
			!strings.Contains(line, j.web.seed) {
			t.Errorf("%s: %s", p.name, line)
		}
	}
}
