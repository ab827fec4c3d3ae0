package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// A step is a part of the cost of a page. A sample of a CPU profile counts for the step of its innermost function that
// any step names.
type step struct {
	name  string
	funcs []string // prefixes of function names
}

// collecting is matched first, anywhere in a stack, because an allocation may have to help the collector.
var collecting = step{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc",
	"runtime.bgsweep", "runtime.bgscavenge",
	"runtime.gcStart", "runtime.gcMarkTermination"}}

var steps = []step{
	{"exchange: request, answer, connection", []string{"kumo/internal/content/fetch"}},
	{"inflating bodies", []string{"kumo/internal/content/inflate"}},
	{"hashes: payload, block, CRC", []string{"crypto/sha1", "hash/crc32"}},
	{"reading HTML: links, title, text", []string{"kumo/internal/content/parse", "kumo/internal/content/chardet",
		"kumo/internal/content/mime"}},
	{"language", []string{"kumo/internal/content/lang"}},
	{"resolving and writing URLs", []string{"kumo/internal/base/weburl"}},
	{"compressing records", []string{"kumo/internal/state/store/warc/deflate", "github.com/klauspost/compress"}},
	{"WARC records, index, logs", []string{"kumo/internal/state/store", "kumo/internal/base/vfs"}},
	{"known URLs, digests", []string{"kumo/internal/state/seen"}},
	{"queues", []string{"kumo/internal/state/frontier"}},
	{"journal, commits", []string{"kumo/internal/state/journal", "kumo/internal/state/ledger",
		"kumo/internal/engine/crawl.(*encoder)"}},
	{"rules, limits, the visit itself", []string{"kumo/internal/engine/crawl", "kumo/internal/content/robots",
		"kumo/internal/base/stats"}},
	{"scheduling goroutines", []string{"runtime.mcall", "runtime.findRunnable", "runtime.schedule", "runtime.mstart",
		"runtime.morestack",
		"runtime.sysmon"}},
}

const restOfIt = "start, end, live view, the rest"

// measureSteps measures the cost of a page by step. The CPU time of the process is divided according to the profile.
func measureSteps(ctx context.Context, b *bench) error {
	b.defaults(100, 20_000, 64, 3)
	dir, err := os.MkdirTemp("", "kumo-steps")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kumo := kumoPeer(b.kumo, "--profile", dir)
	of, pages, micros := map[string]int64{}, 0.0, 0.0
	for round := range b.rounds {
		r, err := b.run(ctx, round, kumo, 0, b.webFlags(b.hosts, b.pages))
		if err != nil {
			return err
		}
		pages += float64(r.score.Covered)
		micros += float64(r.cpu.Microseconds())
		if err := addSteps(of, filepath.Join(dir, "cpu.pprof")); err != nil {
			return err
		}
	}
	total := int64(0)
	for _, n := range of {
		total += n
	}
	var t table
	t.add("step", "µs a page", "share")
	for _, s := range slices.Concat(steps, []step{collecting, {name: restOfIt}}) {
		share := float64(of[s.name]) / float64(total)
		t.add(s.name, fmt.Sprintf("%.1f", share*micros/pages), fmt.Sprintf("%.1f%%", 100*share))
	}
	t.add("sum", fmt.Sprintf("%.1f", micros/pages), "100%")
	fmt.Printf("\n%d pages on %d hosts, %d at once, rounds: %d; profiling adds about 1 %%\n\n", b.pages, b.hosts,
		b.concurrency, b.rounds)
	t.print(os.Stdout)
	return nil
}

// addSteps adds a CPU profile's nanoseconds by step.
func addSteps(of map[string]int64, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	p, err := profile.Parse(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, s := range p.Sample {
		of[stepOf(stack(s))] += s.Value[len(s.Value)-1]
	}
	return nil
}

// stack returns the functions of a sample, innermost first.
func stack(s *profile.Sample) (names []string) {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			names = append(names, line.Function.Name)
		}
	}
	return names
}

func stepOf(stack []string) string {
	if slices.ContainsFunc(stack, collecting.has) {
		return collecting.name
	}
	for _, name := range stack {
		for i := range steps {
			if steps[i].has(name) {
				return steps[i].name
			}
		}
	}
	return restOfIt
}

func (s *step) has(name string) bool {
	return slices.ContainsFunc(s.funcs, func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '/' || strings.HasSuffix(prefix, ")"))
	})
}
