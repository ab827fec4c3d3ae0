package main

import (
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/engine/crawl"
)

func TestIdleOnce(t *testing.T) {
	idle, visited := 0, 0
	l := dedupIdle(crawl.Listener{Idle: func(time.Time) { idle++ }, Visited: func(*page.Record) { visited++ }})
	for range 3 {
		l.Idle(time.Now())
	}
	if idle != 1 {
		t.Errorf("told %d times that nothing waits, want once", idle)
	}
	l.Visited(&page.Record{})
	for range 2 {
		l.Idle(time.Now())
	}
	if idle != 2 || visited != 1 {
		t.Errorf("told %d times after %d visits, want twice after one", idle, visited)
	}
	dedupIdle(crawl.Listener{}).Visited(&page.Record{}) // a Listener without functions
}
