package batch_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/batch/local"
	"kumo/internal/lab/testmain"
)

// A mortal is a storage location whose process dies after a number of changes.
type mortal struct {
	*file.Place
	life atomic.Int64
}

var errDead = errors.New("the process is dead")

func (m *mortal) alive() error {
	if m.life.Add(-1) < 0 {
		return errDead
	}
	return nil
}

func (m *mortal) Create(ctx context.Context, name string) (place.Writer, error) {
	if m.life.Load() < 0 {
		return nil, errDead
	}
	w, err := m.Place.Create(ctx, name)
	return &mortalWriter{w, m}, err
}

func (m *mortal) Rename(ctx context.Context, from, to string) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Place.Rename(ctx, from, to)
}

func (m *mortal) Remove(ctx context.Context, name string) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Place.Remove(ctx, name)
}

type mortalWriter struct {
	place.Writer
	place *mortal
}

func (w *mortalWriter) Close() error {
	if err := w.place.alive(); err != nil {
		return err
	}
	return w.Writer.Close()
}

// crashSite returns a small site with the relevant cases: links, a redirect, two hosts, a page that fails.
func crashSite(t *testing.T) (*site, []*collection.Collection) {
	s := newSite(t, map[string]http.HandlerFunc{})
	s.set("a.test/", s.page("start", "a.test/1", "a.test/2", "a.test/old", "b.test/1", "a.test/none"))
	s.set("a.test/1", s.page("one", "b.test/2"))
	s.set("a.test/2", s.page("two"))
	s.set("a.test/old", s.redirect("b.test/new"))
	s.set("b.test/1", s.page("three"))
	s.set("b.test/2", s.page("four"))
	s.set("b.test/new", s.page("five"))
	s.set("c.test/", s.page("other", "c.test/1"))
	s.set("c.test/1", s.page("six"))
	return s, []*collection.Collection{s.collection("en", "a.test/"), s.collection("fr", "c.test/", "a.test/2")}
}

// outcome returns everything that a day has written, without times.
func (s *site) outcome(t *testing.T, all []*collection.Collection, date string) (lines []string) {
	t.Helper()
	for _, c := range all {
		state, err := batch.ReadState(t.Context(), s.place, c, date)
		if err != nil || state == nil || state.Next.Job != "" {
			t.Fatalf("the day is not done: %+v %v", state, err)
		}
		for url, d := range s.documents(t, c, date) {
			lines = append(lines, fmt.Sprintf("doc %s %s from %s to %s depth %d status %d %s title %s", c.Code, url, d.From,
				d.RedirectTo,
				d.Depth, d.Status, d.Change, d.Title))
		}
		for _, line := range s.outLinks(t, c, date) {
			lines = append(lines, "out "+c.Code+" "+line)
		}
		names, err := batch.DayFiles(t.Context(), s.place, c, "known", date)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			for r, err := range batch.ReadFile(t.Context(), s.place, name) {
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, "known "+string(r.Key))
			}
		}
		lines = append(lines, fmt.Sprintf("xml %s %d", c.Code, s.wellFormed(t, c, date)))
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], ":"+s.port, "")
	}
	slices.Sort(lines)
	return lines
}

// TestARunThatDiesAnywhereIsMadeUpFor lets the process die before each of its changes, and repeats the run: the result
// must be the same as without the crash.
func TestARunThatDiesAnywhereIsMadeUpFor(t *testing.T) {
	s, all := crashSite(t)
	m := &mortal{Place: s.place}
	m.life.Store(1 << 40)
	s.run(t, mortalPipeline(s, m, all))
	changes := 1<<40 - m.life.Load()
	want := s.outcome(t, all, day1)
	step := int64(testmain.Rounds(27, 9)) // each run of the test uses other offsets
	t.Logf("%d changes", changes)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for at := dice.Int64N(step); at < changes; at += step {
		s, all := crashSite(t)
		m := &mortal{Place: s.place}
		m.life.Store(at)
		// The number of changes varies a little, because the contents of files depend on timing.
		if err := mortalPipeline(s, m, all).Run(t.Context()); !errors.Is(err, errDead) && (err != nil || at < changes*9/10) {
			t.Fatalf("after %d changes: %v", at, err)
		}
		p := s.pipeline(day1, 2, all...)
		done := map[string]int{}
		p.Listener.JobStarted = func(j *batch.JobInfo) { done[fmt.Sprint(j.Step)]++ }
		s.run(t, p)
		if got := s.outcome(t, all, day1); !slices.Equal(got, want) {
			t.Fatalf("after %d changes:\n%s\nnot\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if left, err := batch.ListFiles(t.Context(), s.place, batch.WorkFolder); err != nil || len(left) > 0 {
			t.Errorf("after %d changes there is left %v %v", at, left, err)
		}
		for job, n := range done {
			if n > 1 {
				t.Errorf("after %d changes job %s was run %d times", at, job, n)
			}
		}
	}
}

func mortalPipeline(s *site, m *mortal, all []*collection.Collection) *batch.Pipeline {
	p := s.pipeline(day1, 2, all...)
	p.Place = m
	p.Runner = local.New(local.Config{Place: m, Temp: path.Join(s.dir, "temp"), Attempts: 1})
	return p
}
