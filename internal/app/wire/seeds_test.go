package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/base/settings"
	"kumo/internal/engine/seeds"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
)

// manySeeds returns a site with n hosts of one page each, and a job with all of them in a file.
func manySeeds(t *testing.T, n int) (*site, *job.Job) {
	t.Helper()
	pages := map[string]http.HandlerFunc{}
	for i := range n {
		link := fmt.Sprintf(`<a href="http://h%d.test:PORT/from/%d">the last ones, while they are not queued yet</a>`,
			n-1-i, i)
		pages[fmt.Sprintf("h%d.test/", i)] = html(link)
	}
	s := newSite(t, pages)
	var text strings.Builder
	for i := range n {
		// Long comments make the file span many blocks.
		fmt.Fprintf(&text, "%s # %s\n", s.url(fmt.Sprintf("h%d.test/", i)), strings.Repeat("x", 1000))
	}
	j := s.job(t, "h0.test/")
	j.Seeds, j.File = nil, seedFile(t, text.String())
	j.Crawl.IgnoreRobots = true
	return s, j
}

// wantAll returns the expected requests for manySeeds.
func wantAll(n int) (want []string) {
	for i := range n {
		want = append(want, fmt.Sprintf("h%d.test/", i), fmt.Sprintf("h%d.test/from/%d", n-1-i, i))
	}
	return want
}

// Seeds from a file are admitted during the crawl, and their hosts are in scope from the start: a link on the first
// seed's page to the last one's host is followed. The next run with the same file has nothing to do.
func TestSeedsComeWhileTheCrawlRuns(t *testing.T) {
	t.Parallel()
	const n = 1500
	s, j := manySeeds(t, n)
	mustRun(t, j)
	s.wantAsked(t, wantAll(n)...)
	again := *j
	c, err := Open(t.Context(), &again)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if taken, all := c.Seeds(); taken != n || all != n {
		t.Errorf("%d of %d seeds", taken, all)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.wantAsked(t, wantAll(n)...)
}

// A slowEnd is a file whose end is not read before a context has ended.
type slowEnd struct {
	io.ReaderAt
	end int64
	ctx context.Context
}

func (s slowEnd) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.end {
		<-s.ctx.Done()
	}
	return s.ReaderAt.ReadAt(b, off)
}

// If a run is stopped while reading seeds, the same command continues with the rest. Without the file, the crawl is not
// resumed because it would be smaller; an empty file confirms that.
func TestTheRestOfTheSeedsIsNotLost(t *testing.T) {
	t.Parallel()
	const n = 2500
	s, j := manySeeds(t, n)
	ctx, stop := context.WithCancel(t.Context())
	first := *j
	file := *j.File
	file.Bytes = slowEnd{j.File.Bytes, file.Size * 3 / 4, ctx}
	asked := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stop()
		asked.ServeHTTP(w, r)
	})
	first.File = &file
	c, err := Open(ctx, &first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	taken, _ := c.Seeds()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if taken == 0 || taken == n {
		t.Fatalf("%d seeds were taken in before the stop", taken)
	}
	without := *j
	without.File = nil
	if _, err := Open(t.Context(), &without); err == nil || !strings.Contains(err.Error(),
		fmt.Sprintf("%d of the %d seeds", taken, n)) {
		t.Errorf("without the file: %v", err)
	}
	empty := *j
	empty.File = seedFile(t, "# nothing\n")
	var warned error
	empty.Warn = func(err error) { warned = err }
	if c, err := Open(t.Context(), &empty); err != nil {
		t.Errorf("with an empty file: %v", err)
	} else if err := c.Close(); err != nil || warned == nil || !strings.Contains(warned.Error(),
		"the rest is skipped") {
		t.Errorf("%v; warned: %v", err, warned)
	}
	mustRun(t, j)
	s.mu.Lock()
	defer s.mu.Unlock()
	got, want := slices.Sorted(slices.Values(s.asked)), wantAll(n)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%d URLs were asked for, want %d", len(got), len(want))
	}
}

// A checkpoint does not contain the seeds again; settings and WARC files name the file.
func TestManySeedsAreNamedNotListed(t *testing.T) {
	t.Parallel()
	const n = 1500
	_, j := manySeeds(t, n)
	j.Settings = []settings.Setting{{Key: "seed-files", Values: []string{j.File.Setting()}}}
	mustRun(t, j)
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if note := string(c.Views.Note); strings.Contains(note, "http://h17.test") || !strings.Contains(note, j.File.Digest) {
		t.Errorf("the checkpoint's note: %.2000s", note)
	}
	config, err := os.ReadFile(filepath.Join(j.Dir, settings.Name))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("1500 URLs, sha256:%s", j.File.Digest); !strings.Contains(string(config), want) ||
		strings.Contains(string(config), "h17.test") {
		t.Errorf("%s", config)
	}
}

// TestSeedsSurviveCrashes is TestACrawlSurvivesCrashes with a file of seeds: every page of a web is one.
func TestSeedsSurviveCrashes(t *testing.T) {
	t.Parallel()
	for seed, end := crashSeeds(1, 3); seed < min(3, end); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			cfg := synthweb.Clean(seed, 12, 300)
			cfg.MedianSize = 1 << 10
			s := jobtest.Serve(t, cfg)
			j := jobtest.For(s, t.TempDir())
			found := *j
			found.Dir = t.TempDir()
			mustRun(t, &found)
			var text strings.Builder
			for _, l := range lines(t, found.Dir, "pages.jsonl") {
				fmt.Fprintln(&text, l["url"])
			}
			s.Reset()
			j.Seeds, j.File = nil, seedFile(t, text.String())
			ends := livesUntilDone(t, j, rand.New(rand.NewPCG(seed, 1)))
			score := s.Score()
			t.Logf("%v; %d repeats", ends, score.Repeats)
			if n := len(lines(t, j.Dir, "pages.jsonl")); score.Missing != 0 || n != score.Truth {
				t.Errorf("%d pages of %d; the servers saw:\n%s", n, score.Truth, score)
			}
			storetest.CheckConsistent(t, j.Dir)
		})
	}
}

// The state of an older kumo, which stored its seeds elsewhere, is rejected, and not taken for one without seeds.
func TestAnOlderStateIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html(`x`)})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	c.State.Marks = slices.DeleteFunc(c.State.Marks, func(m store.Mark) bool { return strings.HasSuffix(m.Name, "roots") })
	if err := c.State.CheckVersion(); err == nil || !strings.Contains(err.Error(), "--fresh") {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// seedFile opens a file of seeds with this text.
func seedFile(t testing.TB, text string) *seeds.File {
	t.Helper()
	f, err := seeds.OpenFile(t.Context(), "-", strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
