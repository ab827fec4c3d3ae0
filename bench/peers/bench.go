package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// A bench has the environment and parameters of all runs.
type bench struct {
	options
	tools tools
	kumo  string // the kumo command
	dir   string // for crawl output
}

func newBench(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o}
	var err error
	if b.tools, err = newTools(ctx, o.cache); err != nil {
		return nil, err
	}
	if b.kumo, err = b.tools.build(ctx, "kumo", b.tools.root, "./cmd/kumo"); err != nil {
		return nil, err
	}
	b.dir, err = outDir(o.out)
	return b, err
}

// defaults sets the parameters that no flag has set.
func (b *bench) defaults(hosts, pages, concurrency, rounds int) {
	for field, value := range map[*int]int{&b.hosts: hosts, &b.pages: pages, &b.concurrency: concurrency,
		&b.rounds: rounds} {
		if *field == 0 {
			*field = value
		}
	}
}

// webFlags returns the flags of kumo synthweb for a web of this size.
func (b *bench) webFlags(hosts, pages int, more ...string) []string {
	return append([]string{"synthweb", "--seed", fmt.Sprint(b.seed), "--hosts", fmt.Sprint(hosts), "--pages",
		fmt.Sprint(pages)}, more...)
}

// A result is the result of one run.
type result struct {
	used
	score   score
	server  time.Duration // CPU time of the server during the run
	stopped bool          // stopped before its end
}

// perCPU returns the pages fetched per second of CPU time.
func (r result) perCPU() float64 { return float64(r.score.Covered) / r.cpu.Seconds() }

// perPage returns the CPU time per page, in microseconds.
func (r result) perPage() float64 { return 1e6 / r.perCPU() }

func (r result) perSecond() float64 { return float64(r.score.Covered) / r.wall.Seconds() }

// crawl runs a peer on its own server.
func (b *bench) crawl(ctx context.Context, p *peer, concurrency int, limit time.Duration, web []string,
	env ...string) (result, error) {
	w, err := startWeb(ctx, b.kumo, web)
	if err != nil {
		return result{}, err
	}
	defer w.stop()
	dir := filepath.Join(b.dir, p.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	to := job{web: w, dir: dir, concurrency: concurrency}
	if p.prepare != nil {
		if err := p.prepare(to); err != nil {
			return result{}, err
		}
	}
	before := w.cpu()
	argv := p.command(p.path, to)
	var r result
	r.used, r.stopped, err = execute(ctx, argv, dir, env, limit)
	var exit *exec.ExitError
	if errors.As(err, &exit) && slices.Contains(p.fine, exit.ExitCode()) {
		err = nil
	}
	if err != nil {
		return r, fmt.Errorf("run %s: %w", p.name, err)
	}
	r.server = w.cpu() - before
	if r.score, err = w.score(ctx); err == nil && r.score.Covered == 0 {
		err = fmt.Errorf("run %s: no page was fetched with %q", p.name, argv)
	}
	return r, err
}
