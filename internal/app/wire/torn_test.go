package wire

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// A copier copies a folder like cp and rsync, file by file, while a crawl is running: a folder is listed when the
// copier reaches it, and files that have disappeared by then are omitted. Each call of step copies one file.
type copier struct {
	from, to string
	dice     *rand.Rand
	wait     int // steps until it starts
	pace     int // approximate steps per file
	rooms    []string
	files    []string
}

func newCopier(from, to string, dice *rand.Rand) *copier {
	c := &copier{from: from, to: to, dice: dice, wait: dice.IntN(250), pace: 1 + dice.IntN(6)}
	c.rooms = []string{"", "warc", "state", "state/journal", "state/seen", "state/digests", "state/frontier",
		"state/abandoned", "state/robots"}
	dice.Shuffle(len(c.rooms), func(i, j int) { c.rooms[i], c.rooms[j] = c.rooms[j], c.rooms[i] })
	return c
}

// step reports whether there may be more to copy.
func (c *copier) step() bool {
	if c.wait--; c.wait >= 0 || c.dice.IntN(c.pace) > 0 {
		return true
	}
	for len(c.files) == 0 {
		if len(c.rooms) == 0 {
			return false
		}
		c.enter(c.rooms[0])
		c.rooms = c.rooms[1:]
	}
	name := c.files[0]
	c.files = c.files[1:]
	text, err := os.ReadFile(filepath.Join(c.from, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(c.to, name), text, 0o600)
	}
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	return true
}

func (c *copier) enter(room string) {
	entries, err := os.ReadDir(filepath.Join(c.from, room))
	if err != nil {
		return // there is none yet
	}
	if err := os.MkdirAll(filepath.Join(c.to, room), 0o700); err != nil {
		panic(err)
	}
	for _, e := range entries {
		if e.Type() == fs.FileMode(0) {
			c.files = append(c.files, filepath.Join(room, e.Name()))
		}
	}
	c.dice.Shuffle(len(c.files), func(i, j int) { c.files[i], c.files[j] = c.files[j], c.files[i] })
}

// TestACopyOfALiveFolderGoesOnOrIsRefused: files copied at different times of a crawl are inconsistent. Either the copy
// can be resumed, and then fetches all pages and is consistent; or it is rejected with advice.
func TestACopyOfALiveFolderGoesOnOrIsRefused(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	for range max(crashWebs()/4, 1) {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { tornCopies(t, seed) })
	}
}

func tornCopies(t *testing.T, seed uint64) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(seed, 0))
	cfg := synthweb.Clean(seed, 12, 400)
	cfg.MedianSize = 1 << 10
	cfg.Kinds[synthweb.Copy] = 100
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	j.Crawl.Checkpoint, j.Crawl.Commit = pick[int64](dice, 1, 4<<10, 16<<10), time.Millisecond
	j.Crawl.NoTraps = true // otherwise pages with similar texts may be excluded
	j.Memory = pick[int64](dice, 256<<10, 64<<20)
	j.WARCSize = pick[int64](dice, 16<<10, 64<<10, 1e9)
	if dice.IntN(2) == 0 {
		doubt(t, j)
	}
	var copies []*copier
	for range 6 {
		copies = append(copies, newCopier(j.Dir, t.TempDir(), rand.New(rand.NewPCG(dice.Uint64(), 0))))
	}
	var mu sync.Mutex
	live := *j
	live.Listener = crawl.Listener{Visited: func(*page.Record) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range copies {
			c.step()
		}
		dawdle()
	}}
	mustRun(t, &live)
	for _, c := range copies {
		for c.step() {
		}
	}
	truth := s.Score().Truth
	refused := 0
	for i, c := range copies {
		job := *j
		job.Dir = c.to
		if err := run(t, t.Context(), &job); err != nil {
			refused++
			if !strings.Contains(advice.Of(err), "kumo repair") {
				t.Errorf("copy %d: the error names no way on: %v", i, err)
			}
			t.Logf("copy %d: refused: %v", i, err)
			if _, err := testRepair(t, &job, false); err != nil {
				t.Errorf("copy %d: repair: %v", i, err)
				continue
			}
			if err := run(t, t.Context(), &job); err != nil {
				t.Errorf("copy %d, repaired: %v", i, err)
				continue
			}
		}
		if n := len(lines(t, c.to, "pages.jsonl")); n != truth {
			t.Errorf("copy %d went on, and has %d of %d pages", i, n, truth)
		}
		for _, f := range faultsOf(t, c.to) {
			t.Errorf("copy %d went on, and has a fault: %s", i, &f)
		}
	}
	t.Logf("%d of %d copies were refused", refused, len(copies))
}
