package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"kumo/internal/lab/synthweb"
)

// Recorded allocations per page, including robots.txt, queues, journal and WARC. To update them after a change, use the
// values that the test logs: go test -v -run TestAllocationsOfAPage ./cmd/kumo
//
// Objects differ by one percent between runs, bytes by nine: growing buffers are few, but large.
const (
	recordedObjects = 54.7
	mostObjects     = 1.1 * recordedObjects
	recordedBytes   = 33_000
	mostBytes       = 1.4 * recordedBytes
)

// measureEnv names the file into which a child process writes its allocations. The server's objects are not included.
const measureEnv = "KUMO_TEST_ALLOCATIONS"

// An allocation is the total of a run.
type allocation struct{ Objects, Bytes uint64 }

func TestAllocationsOfAPage(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates, too")
	}
	const hosts, pages = 20, 2000
	s, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(1, hosts, pages)), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	took := measured(t, append(strings.Fields(crawlLine(s))[1:], "-q", "--delay", "0s", "--ip-delay", "0s", "-c", "64",
		"-o", t.TempDir())...)
	score := s.Score()
	if !score.Perfect() {
		t.Fatalf("the servers saw:\n%s", score)
	}
	objects, bytes := float64(took.Objects)/float64(score.Covered), float64(took.Bytes)/float64(score.Covered)
	t.Logf("%.1f objects and %.0f bytes a page, recorded are %.1f and %d", objects, bytes, recordedObjects, recordedBytes)
	if objects > mostObjects || bytes > mostBytes {
		t.Errorf("that is more than %.1f or %.0f: see with kumo crawl --profile who allocates, or record it", mostObjects,
			mostBytes)
	}
}

// measured runs the command in a process of its own and returns its allocations.
func measured(t *testing.T, args ...string) (took allocation) {
	t.Helper()
	result := filepath.Join(t.TempDir(), "allocated")
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestMeasuredRun$", "--"}, args...)...)
	// Pools exist per processor, and a collection empties them: use the same settings on every machine.
	cmd.Env = append(os.Environ(), measureEnv+"="+result, "GOMAXPROCS=2", "GOGC=", "GOMEMLIMIT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kumo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &took); err != nil {
		t.Fatal(err)
	}
	return took
}

// TestMeasuredRun is not a test but the process that TestAllocationsOfAPage starts.
func TestMeasuredRun(t *testing.T) {
	path := os.Getenv(measureEnv)
	if path == "" {
		t.Skip("it is for TestAllocationsOfAPage")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := run(flag.Args())
	runtime.ReadMemStats(&after)
	if code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	data, err := json.Marshal(allocation{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
