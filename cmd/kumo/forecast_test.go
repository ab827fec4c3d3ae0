package main

import (
	"os"
	"strings"
	"testing"

	"kumo/internal/app/inspect"
)

// kumo status prints the forecast of the slowest node, and notes about stalled nodes.
func TestStatusHasForecastAndStalls(t *testing.T) {
	c := &inspect.Cluster{State: "running", Nodes: []inspect.Node{
		{Name: "a", Is: inspect.NodeMember, EndsIn: 60, Growth: -2, Forecast: "at least 1 min: x",
			Load: inspect.Load{Waiting: 5}},
		{Name: "b", Is: inspect.NodeMember, EndsIn: 3600, Growth: 5, Forecast: "at least 1 h: y", Stalled: 90,
			StalledBy: "disk",
			StallWhy:  "the disk has 1 kB left", StallDo: "make room", Load: inspect.Load{Waiting: 5}},
		{Name: "c", Is: inspect.NodeDead, EndsIn: 9999, Growth: 100, Forecast: "z", Load: inspect.Load{Waiting: 5}},
	}}
	if got := c.Forecast(); got != "ends: at least 1 h: y (b); queue: +3.0 URLs/s (all nodes)" {
		t.Errorf("%q", got)
	}
	want := "b is STALLED: no response for 90 s: the disk has 1 kB left; what to do: make room"
	if got := strings.Join(c.Notes(), "\n"); !strings.Contains(got, want) || strings.Contains(got, "a is STALLED") {
		t.Errorf("the notes:\n%s", got)
	}
	c.State = "done"
	if got := c.Forecast(); got != "" {
		t.Errorf("of a crawl that is done: %q", got)
	}
}

// Without a terminal, or with a dumb one, nothing is drawn.
func TestDraws(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal is to be had here")
	}
	defer terminal.Close()
	for kind, want := range map[string]bool{"xterm": true, "dumb": false, "": true} {
		t.Setenv("TERM", kind)
		if got := draws(terminal); got != want {
			t.Errorf("TERM=%q: %v", kind, got)
		}
	}
	t.Setenv("TERM", "xterm")
	if draws(&strings.Builder{}) {
		t.Error("a builder is no terminal")
	}
}
