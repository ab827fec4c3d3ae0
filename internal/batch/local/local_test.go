package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/batch"
	"kumo/internal/batch/batchtest"
)

func openPlace(t testing.TB, disk vfs.FS) *file.Place {
	t.Helper()
	p, err := file.Open(t.TempDir(), disk)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRunner(t *testing.T) {
	for name, cfg := range map[string]Config{
		"as it comes":                 {},
		"small splits, little memory": {Split: 4 << 10, Memory: 32 << 10, Cores: 3},
	} {
		t.Run(name, func(t *testing.T) {
			batchtest.Run(t, func(t *testing.T) batchtest.Fixture {
				p, cfg := openPlace(t, vfs.OS), cfg
				cfg.Place, cfg.Temp = p, filepath.Join(t.TempDir(), "temp")
				t.Cleanup(func() {
					if left, err := os.ReadDir(cfg.Temp); err != nil || len(left) > 0 {
						t.Errorf("left in the temporary folder: %v %v", left, err)
					}
				})
				return batchtest.Fixture{Runner: New(cfg), Place: p}
			})
		})
	}
}

func writeInput(t testing.TB, p *file.Place, n, size int) []string {
	t.Helper()
	value := strings.Repeat("x", size)
	err := batch.WriteFile(t.Context(), p, "input", func(emit batch.Emit) error {
		for i := range n {
			if err := emit(fmt.Appendf(nil, "%08d", i*7919%n), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"input"}
}

func TestAFullTemporaryDiskIsNotTriedAgain(t *testing.T) {
	disk, p := vfstest.NewFaulty(vfs.OS), openPlace(t, vfs.OS)
	inputs := writeInput(t, p, 1000, 1000)
	disk.SetRoom(1000)
	tries := 0
	job := *batchtest.Job("identity")
	pass := job.Map
	job.Map = func(ctx context.Context, task *batch.Task, r batch.Record, emit batch.Emit) error {
		tries = max(tries, task.Attempt+1)
		return pass(ctx, task, r, emit)
	}
	_, err := New(Config{Place: p, Temp: t.TempDir(), Disk: disk}).Run(t.Context(), batch.Run{Job: &job, Inputs: inputs,
		Output: "output", Reducers: 2})
	if !errors.Is(err, syscall.ENOSPC) || tries != 1 {
		t.Errorf("after %d attempts: %v", tries, err)
	}
}

func TestAPanicIsTheTasksError(t *testing.T) {
	p := openPlace(t, vfs.OS)
	job := batch.Job{Name: "bad", Map: func(context.Context, *batch.Task, batch.Record,
		batch.Emit) error {
		panic("oh no")
	}}
	_, err := New(Config{Place: p, Temp: t.TempDir()}).Run(t.Context(), batch.Run{Job: &job, Output: "output",
		Inputs: writeInput(t, p, 3, 3)})
	if err == nil || !strings.Contains(err.Error(), "oh no") || !strings.Contains(err.Error(), "job bad") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatAKilledProcessLeftGoes(t *testing.T) {
	p, temp := openPlace(t, vfs.OS), t.TempDir()
	for _, name := range []string{"kumo-batch-dead", "other"} {
		if err := os.MkdirAll(filepath.Join(temp, name, "map"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kumo-batch-dead.lock", "kumo-batch-alone.lock"} {
		if err := os.WriteFile(filepath.Join(temp, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := New(Config{Place: p, Temp: temp})
	_, done, err := r.createTemp() // of an active job
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), batch.Run{Job: batchtest.Job("identity"), Output: "output", Reducers: 1}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(temp)
	if err != nil || len(left) != 3 { // another file, and the folder and lock of the active job
		t.Errorf("left: %v %v", left, err)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("sorts 400 MB")
	}
	p := openPlace(t, vfs.OS)
	const n, size, memory = 40_000, 10_000, 16 << 20
	inputs := writeInput(t, p, n, size)
	var most uint64
	job := *batchtest.Job("identity")
	job.Reduce = batch.EachKey(func(_ context.Context, task *batch.Task, _ []byte, values iter.Seq[[]byte],
		_ batch.Emit) error {
		for range values {
			task.Count("test", "out", 1)
		}
		if task.Counters().Get("test", "out")%5000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		return nil
	})
	result, err := New(Config{Place: p, Temp: t.TempDir(), Memory: memory, Cores: 2}).Run(t.Context(), batch.Run{Job: &job,
		Inputs: inputs, Output: "output", Reducers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := result.Counters.Get("test", "out"); got != n {
		t.Errorf("%d records of %d", got, n)
	}
	if most > 96<<20 {
		t.Errorf("%d MiB are held while %d MB are merged", most>>20, n*size/1_000_000)
	}
}

func BenchmarkIdentity(b *testing.B) {
	p := openPlace(b, vfs.OS)
	const n, size = 20_000, 5000
	inputs := writeInput(b, p, n, size)
	b.SetBytes(n * size)
	for b.Loop() {
		_, err := New(Config{Place: p, Temp: b.TempDir(), Memory: 32 << 20}).Run(b.Context(), batch.Run{
			Job: batchtest.Job("identity"), Inputs: inputs, Output: "output", Reducers: 2})
		if err != nil {
			b.Fatal(err)
		}
	}
}
