package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A job is a crawl: fetch all of a web into a folder, with a number of concurrent fetches and without delay.
type job struct {
	web         *web
	dir         string
	concurrency int
}

// A peer is a crawler and how to run it.
type peer struct {
	name    string
	does    string // features beyond fetching and following links, in a word or two
	get     func(ctx context.Context, t tools) (path string, err error)
	prepare func(j job) error // optional preparation
	command func(path string, j job) []string
	path    string // of the program, once built or found
	fine    []int  // exit codes of successful crawls, besides 0
}

// kumoPeer is kumo with additional flags.
func kumoPeer(path string, more ...string) *peer {
	return &peer{name: "kumo", does: "robots, WARC, journal", path: path, command: func(path string, j job) []string {
		argv := []string{path, "crawl", "-q", "--fresh", "-o", filepath.Join(j.dir, "crawl"), "--min-free-disk", "0",
			"--delay", "0s", "--ip-delay", "0s", "-c", fmt.Sprint(j.concurrency)}
		return slices.Concat(argv, more, j.web.flags, []string{j.web.seed})
	}}
}

// peers are the other crawlers. Like kumo, each follows only links: images and style sheets are excluded where there is
// an option for it.
var peers = []*peer{
	{name: "loop", does: "nothing", get: buildLoop, command: func(path string, j job) []string {
		return []string{path, "-workers", fmt.Sprint(j.concurrency), j.web.seed}
	}},
	{name: "loop-warc", does: "WARC", get: buildLoop, command: func(path string, j job) []string {
		return []string{path, "-workers", fmt.Sprint(j.concurrency), "-warc", filepath.Join(j.dir, "loop.warc.gz"),
			j.web.seed}
	}},
	{name: "colly", does: "robots", get: func(ctx context.Context, t tools) (string, error) {
		return t.build(ctx, "colly", filepath.Join(t.here, "colly"), ".")
	}, command: func(path string, j job) []string {
		return []string{path, "-threads", fmt.Sprint(j.concurrency), j.web.seed}
	}},
	{name: "wget2", does: "robots, files", get: func(ctx context.Context, t tools) (string, error) {
		return t.debian(ctx, "wget2")
	}, command: func(path string, j job) []string {
		return []string{path, "-q", "-r", "-l", "0", "-H", "--max-threads", fmt.Sprint(j.concurrency), "--robots=on",
			"--ignore-tags=img,link", "--compression=gzip", "--check-certificate=off", "--tries=1", "-P", j.dir, j.web.seed}
	}, fine: []int{8}}, // some answers were errors such as 404
	{name: "katana", does: "nothing", get: func(ctx context.Context, t tools) (string, error) {
		return t.pinned(ctx, "github.com/projectdiscovery/katana", "v1.2.2", "cmd/katana")
	}, command: func(path string, j job) []string {
		return []string{path, "-u", j.web.seed, "-no-scope", "-depth", "1000", "-concurrency", fmt.Sprint(j.concurrency),
			"-rate-limit", "100000", "-disable-update-check", "-silent", "-omit-raw", "-omit-body", "-output",
			filepath.Join(j.dir, "urls")}
	}},
	{name: "zeno", does: "WARC", get: func(ctx context.Context, t tools) (string, error) {
		return t.install(ctx, "Zeno", "github.com/internetarchive/Zeno@latest")
	}, command: func(path string, j job) []string {
		return []string{path, "get", "url", j.web.seed, "--workers", fmt.Sprint(j.concurrency), "--max-hops", "1000",
			"--disable-assets-capture", "--no-stdout-log", "--no-log-file", "--job", "bench", "--min-space-required", "1"}
	}},
}

func buildLoop(ctx context.Context, t tools) (string, error) {
	return t.build(ctx, "loop", t.here, "./loop")
}

// choose prepares the named peers, or all, and reports those that are not available.
func choose(ctx context.Context, t tools, names string, say func(format string, args ...any)) ([]*peer, error) {
	var chosen []*peer
	for _, p := range peers {
		if names == "" || slices.Contains(strings.Split(names, ","), p.name) {
			chosen = append(chosen, p)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if name != "" && !slices.ContainsFunc(chosen, func(p *peer) bool { return p.name == name }) {
			return nil, fmt.Errorf("unknown peer %q", name)
		}
	}
	return slices.DeleteFunc(chosen, func(p *peer) bool {
		var err error
		if p.path, err = p.get(ctx, t); err != nil {
			say("SKIPPED: %s is not available: %v", p.name, err)
		}
		return err != nil
	}), nil
}
