package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kumo/internal/lab/synthweb"
)

const (
	leastLatency = 500 * time.Millisecond
	mostLatency  = 9 * time.Second
	deadPercent  = 10
)

// measureSlow compares the rate of answers from slow hosts with the maximum that the delays allow. Some of the hosts
// never answer. It measures after a warm-up in which the hosts are found, and before any host runs out of pages.
func measureSlow(ctx context.Context, b *bench) error {
	b.defaults(900, 450_000, 1000, 3)
	allowed := b.allowed()
	var t table
	t.add("answers/s", "delays allow", "achieved", "CPU ms an answer", "peak MB")
	for range b.rounds {
		w, err := b.watch(ctx)
		if err != nil {
			return err
		}
		t.add(number(w.rate), number(allowed), fmt.Sprintf("%.1f%%", 100*w.rate/allowed),
			number(1000*w.used.cpu.Seconds()/w.answers), number(mega(w.used.rss)))
		b.say("%s answers/s of %s", number(w.rate), number(allowed))
	}
	fmt.Printf("\n%d hosts that take %v to %v to answer and %d %% more that are dead, %d at once; %v after as long to "+
		"warm up\n\n",
		b.hosts, leastLatency, mostLatency, deadPercent, b.concurrency, b.window)
	t.print(os.Stdout)
	return nil
}

// allowed returns the maximum rate of answers: one connection, never idle, to each of the fastest hosts, as many as
// there are concurrent fetches.
func (b *bench) allowed() float64 {
	cfg := synthweb.Clean(b.seed, b.hosts, b.pages)
	cfg.Latency, cfg.Slowest = leastLatency, mostLatency
	web := synthweb.New(cfg)
	waits := make([]time.Duration, web.Len())
	for i := range waits {
		waits[i] = web.Latency(i)
	}
	slices.Sort(waits)
	rate := 0.0
	for _, wait := range waits[:min(b.concurrency, len(waits))] {
		rate += 1 / wait.Seconds()
	}
	return rate
}

// A watched is the result of observing a crawl for a window of time.
type watched struct {
	rate    float64 // answers per second in the window
	answers float64 // of the whole run
	used    used
}

// watch runs kumo through warm-up and window, and stops it.
func (b *bench) watch(ctx context.Context) (w watched, err error) {
	span := fmt.Sprintf("%v-%v", leastLatency, mostLatency)
	server, err := startWeb(ctx, b.kumo, b.webFlags(b.hosts, b.pages, "--latency", span, "--dead",
		fmt.Sprint(deadPercent)))
	if err != nil {
		return w, err
	}
	defer server.stop()
	if _, err := server.score(ctx); err != nil { // the first call is slow
		return w, err
	}
	dir := filepath.Join(b.dir, "slow")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return w, err
	}
	defer os.RemoveAll(dir)
	kumo := kumoPeer(b.kumo)
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		var err error
		w.used, _, err = execute(running, kumo.command(kumo.path, job{web: server, dir: dir, concurrency: b.concurrency}),
			dir, nil, 0)
		ended <- err
	}()
	var scores [2]score
	for i := range scores {
		select {
		case <-time.After(b.window):
		case err := <-ended:
			return w, errors.Join(errors.New("the crawl ended before the window; use more pages"), err)
		}
		if scores[i], err = server.score(ctx); err != nil {
			return w, err
		}
	}
	stop()
	<-ended // the error is that it was killed
	w.answers = answers(scores[1])
	w.rate = (w.answers - answers(scores[0])) / b.window.Seconds()
	return w, ctx.Err()
}

func answers(s score) (n float64) {
	for status, count := range s.Statuses {
		if status > 0 {
			n += float64(count)
		}
	}
	return n
}
