package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/batchtest"
	"kumo/internal/batch/local"
)

// A piped runner runs a job's tasks as Hadoop does: each over pipes, with a sort between. Only bytes pass between them.
type piped struct{ place place.Place }

func (p *piped) Run(ctx context.Context, r batch.Run) (*batch.Result, error) {
	result := &batch.Result{Counters: &batch.Counters{}}
	if err := errors.Join(p.place.Remove(ctx, r.Output), ctx.Err()); err != nil {
		return nil, err
	}
	sorter := extsort.New(extsort.Config{Parts: max(r.Reducers, 1), Dir: "not written"})
	defer sorter.Close()
	for i, name := range r.Inputs {
		in, err := p.records(ctx, name)
		if err != nil {
			return nil, err
		}
		err = p.attempts(ctx, r, result, i, len(r.Inputs), !r.Job.Reduces(), func(t *batch.Task, emit batch.Emit) error {
			return Map(ctx, r.Job, t, NewReader(bytes.NewReader(in)), emit)
		}, func(out []byte) error {
			if !r.Job.Reduces() {
				return nil
			}
			return each(out, func(key, value []byte) error { return sorter.Add(r.Job.PartitionOf(key, r.Reducers), key, value) })
		})
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", r.Job.Name, err)
		}
	}
	for i := range r.Reducers {
		if !r.Job.Reduces() {
			break
		}
		m, err := sorter.Sorted(i)
		if err != nil {
			return nil, err
		}
		var sorted, combined bytes.Buffer
		w := NewWriter(&sorted)
		for {
			key, value, err := m.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err := errors.Join(err, w.Write(key, value)); err != nil {
				return nil, err
			}
		}
		c := NewWriter(&combined)
		if err := errors.Join(w.Flush(), m.Close(), Combine(ctx, r.Job, NewReader(&sorted), c.Write), c.Flush()); err != nil {
			return nil, err
		}
		err = p.attempts(ctx, r, result, i, r.Reducers, true, func(t *batch.Task, emit batch.Emit) error {
			return Reduce(ctx, r.Job, t, NewReader(bytes.NewReader(combined.Bytes())), emit)
		}, func([]byte) error { return nil })
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", r.Job.Name, err)
		}
	}
	return result, nil
}

// attempts runs a task until it succeeds. Its output goes to taken, and to the job's output if final is set.
func (p *piped) attempts(ctx context.Context, r batch.Run, result *batch.Result, index, of int, final bool,
	run func(*batch.Task, batch.Emit) error, taken func([]byte) error) error {
	for attempt := 0; ; attempt++ {
		t := batch.NewTask(index, of, attempt, nil)
		var out bytes.Buffer
		w := NewWriter(&out)
		err := errors.Join(run(t, w.Write), w.Flush())
		if err != nil {
			if result.Failed++; attempt == 3 {
				return err
			}
			continue
		}
		result.Counters.AddAll(t.Counters().All())
		if err := taken(out.Bytes()); err != nil || !final {
			return err
		}
		sink := batch.NewSink(ctx, p.place, r.Output, index, r.Job)
		if err := each(out.Bytes(), sink.Emit); err != nil {
			return err
		}
		return sink.Commit()
	}
}

func (p *piped) records(ctx context.Context, name string) ([]byte, error) {
	var b bytes.Buffer
	w := NewWriter(&b)
	for r, err := range batch.ReadFile(ctx, p.place, name) {
		if err := errors.Join(err, w.Write(r.Key, r.Value)); err != nil {
			return nil, err
		}
	}
	err := w.Flush()
	return b.Bytes(), err
}

func each(data []byte, f func(key, value []byte) error) error {
	in := NewReader(bytes.NewReader(data))
	for {
		key, value, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err := errors.Join(err, f(key, value)); err != nil {
			return err
		}
	}
}

func TestACutStreamIsAnError(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.Write([]byte("key"), []byte("value")), w.Flush()); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < b.Len(); n++ {
		if _, _, err := NewReader(bytes.NewReader(b.Bytes()[:n])).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of %d: %v", n, b.Len(), err)
		}
	}
	if _, _, err := NewReader(strings.NewReader("<html>")).Next(); err == nil {
		t.Error("text is read")
	}
}

func FuzzReader(f *testing.F) {
	var b bytes.Buffer
	w := NewWriter(&b)
	_ = errors.Join(w.Write([]byte("a"), nil), w.Write(nil, []byte("\x00\n")), w.Flush())
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		w := NewWriter(&out)
		in := NewReader(bytes.NewReader(data))
		for {
			key, value, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
			if err := w.Write(key, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil || !bytes.Equal(out.Bytes(), data) {
			t.Errorf("%q came back as %q: %v", data, out.Bytes(), err)
		}
	})
}

// TestRunnersAgree runs the suite's jobs over pipes and in this process: the output must be the same.
func TestRunnersAgree(t *testing.T) {
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	err = batch.WriteFile(t.Context(), p, "input", func(emit batch.Emit) error {
		for i := range 1000 {
			if err := emit(fmt.Appendf(nil, "%d", i*i%89), fmt.Appendf(nil, "w%d w%d \x00\n\xff", i%7, i%5)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	runners := map[string]batch.Runner{"pipes": &piped{p}, "process": local.New(local.Config{Place: p, Temp: t.TempDir()})}
	for _, job := range []string{"identity", "words", "partition", "first"} {
		outputs := map[string]string{}
		for name, r := range runners {
			_, err := r.Run(t.Context(), batch.Run{Job: batchtest.Job(job), Inputs: []string{"input"}, Output: "output",
				Reducers: 3})
			if err != nil {
				t.Fatalf("%s, %s: %v", job, name, err)
			}
			names, err := batch.ListFiles(t.Context(), p, "output")
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, f := range names {
				for r, err := range batch.ReadFile(t.Context(), p, f) {
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, fmt.Sprintf("%s %q %q", f, r.Key, r.Value))
				}
			}
			slices.Sort(all)
			outputs[name] = strings.Join(all, "\n")
		}
		if outputs["pipes"] != outputs["process"] || outputs["pipes"] == "" {
			t.Errorf("%s: the runners give other records", job)
		}
	}
}

func TestTasksOverPipes(t *testing.T) {
	batchtest.Run(t, func(t *testing.T) batchtest.Fixture {
		p, err := file.Open(t.TempDir(), vfs.OS)
		if err != nil {
			t.Fatal(err)
		}
		return batchtest.Fixture{Runner: &piped{p}, Place: p}
	})
}
