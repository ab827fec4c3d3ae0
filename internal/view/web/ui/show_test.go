package ui

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
)

func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "<bdi>plain</bdi>", "<b>&\"'": "<bdi>&lt;b&gt;&amp;&#34;&#39;</bdi>", "שלום": "<bdi>שלום</bdi>",
		"a\u202eb":                     `<bdi>a<span class="hidden">U+202E</span>b</bdi>`,
		"\x1b[1m":                      `<bdi><span class="hidden">U+001B</span>[1m</bdi>`,
		"x\xffy":                       `<bdi>x<span class="hidden">0xFF</span>y</bdi>`,
		"\ufffd":                       `<bdi><span class="hidden">U+FFFD</span></bdi>`,
		"a\nb":                         `<bdi>a<span class="hidden">U+000A</span>b</bdi>`,
		"\u2028\ufeff\u00ad\U000e0041": `<bdi><span class="hidden">U+2028</span><span class="hidden">U+FEFF</span><span class="hidden">U+00AD</span><span class="hidden">U+E0041</span></bdi>`,
	} {
		if got := string(show(in)); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
	if got := string(showLines("a\n\tb\r")); got != "<bdi>a\n\tb<span class=\"hidden\">U+000D</span></bdi>" {
		t.Error(got)
	}
	if got := plain("a\u202e<\xfe"); got != "a[U+202E]<[0xFE]" {
		t.Error(got)
	}
}

func FuzzShow(f *testing.F) {
	f.Add("<script>\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{string(show(s)), plain(s)} {
			if i := strings.IndexFunc(got, hidden); i >= 0 {
				t.Errorf("%q has %q", got, got[i:])
			}
		}
		if got := string(show(s)); strings.Count(got, "<") != 2+2*strings.Count(got, `<span class="hidden">`) {
			t.Errorf("%q becomes %s", s, got)
		}
	})
}

// Problems are described in words, with advice.
func TestWords(t *testing.T) {
	for want, o := range map[string]Overview{
		"wrong: Offline for 90 s: dial":                                                       {Status: inspect.Status{State: inspect.Running, CutOff: 90, CutOffWhy: "dial"}},
		"wrong: No answers for 2 min: the disk is full":                                       {Status: inspect.Status{State: inspect.Running, Stalled: 120, StalledBy: "disk", StallWhy: "the disk is full", StallDo: "make room"}},
		"look: The crawl is paused":                                                           {Status: inspect.Status{State: inspect.Paused}},
		"look: 50 % of all requested URLs got no answer, mostly for one reason: dns":          {Status: inspect.Status{State: inspect.Running, Report: stats.Report{Pages: 30, Failed: 30, Errors: map[string]int64{"tls": 3, "dns": 27}}}},
		"look: 50 % of answers ask the crawl to slow down (429, 503)":                         {Status: inspect.Status{State: inspect.Running, Report: stats.Report{Pages: 80, Statuses: map[int]int64{429: 30, 503: 10, 200: 40}}}},
		"info: Ends: about 9 h":                                                               {Status: inspect.Status{State: inspect.Running, Forecast: "about 9 h"}},
		"info: 7 URLs were in the queue when it ended":                                        {Status: inspect.Status{State: inspect.Stopped, Report: stats.Report{Waiting: 7}}},
		"look: The last run was killed, or could not write its report for lack of disk space": {Status: inspect.Status{State: inspect.BrokenOff}},
		"look: This machine had no file descriptor, port or buffer for 4 connections":         {Status: inspect.Status{State: inspect.Running, Report: stats.Report{OutOfSockets: 4}}},
		"look: 3 hosts were abandoned, with 9 URLs pending":                                   {Status: inspect.Status{State: inspect.Running, Report: stats.Report{HostsAbandoned: 3, HostsAnswered: 1, Abandoned: 9}}},
	} {
		all := notices(&o)
		if len(all) != 1 || all[0].Level+": "+all[0].What != want {
			t.Errorf("%+v, want %s", all, want)
		}
	}
}

func TestChartOfPoints(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var points []stats.Point
	for i := range 1000 {
		points = append(points, stats.Point{Time: begin.Add(time.Duration(i) * 5 * time.Second), Pages: int64(50 * i)})
	}
	c := draw("Pages per second", "good", points, func(a, b *stats.Point) float64 {
		return float64(b.Pages-a.Pages) / b.Time.Sub(a.Time).Seconds()
	}, rate)
	if c.Most != "10.0/s" || c.Last != "10.0/s" || strings.Count(c.Line, "L") > chartSteps || len(c.Line) > 4000 {
		t.Errorf("%+v", c)
	}
}

// Points of a crawl that has ended are as far apart as its pages were, which may be less than a millisecond.
func TestChartOfPointsThatLieTogether(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	points := []stats.Point{{Time: begin}}
	for i := range 30 {
		at := begin.Add(time.Duration(i) * time.Second)
		points = append(points, stats.Point{Time: at.Add(500 * time.Millisecond), Pages: int64(10*i + 4)},
			stats.Point{Time: at.Add(500*time.Millisecond + 80*time.Microsecond), Pages: int64(10*i + 10)})
	}
	c := draw("Pages per second", "good", points, func(a, b *stats.Point) float64 {
		return float64(b.Pages-a.Pages) / b.Time.Sub(a.Time).Seconds()
	}, rate)
	if c.Most != "16.0/s" || strings.Count(c.Line, "L") > 30 {
		t.Errorf("%+v", c)
	}
}
