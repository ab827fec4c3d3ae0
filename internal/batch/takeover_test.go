package batch_test

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/batch"
)

// A farRunner is a runner whose jobs survive its process: it leaves a file where the job's output will be.
type farRunner struct {
	batch.Runner
	place     place.Place
	dies      bool
	found     []string // outputs with a file of an earlier process
	abandoned []string
}

const farNote = "note"

func (r *farRunner) Run(ctx context.Context, run batch.Run) (*batch.Result, error) {
	note := path.Join(run.Output, farNote)
	switch _, err := r.place.Stat(ctx, note); {
	case err == nil:
		r.found = append(r.found, run.Output)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if r.dies {
		return nil, errors.Join(errDead, place.WriteFile(ctx, r.place, note, nil))
	}
	return r.Runner.Run(ctx, run)
}

func (r *farRunner) Abandon(_ context.Context, output string) error {
	r.abandoned = append(r.abandoned, output)
	return nil
}

func TestAJobThatOutlivesItsProcessIsTakenOverOrAbandoned(t *testing.T) {
	for name, n := range map[string]int{"the same collections": 2, "one of them": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, all := crashSite(t)
			first := s.pipeline(day1, 2, all...)
			dying := &farRunner{Runner: first.Runner, place: s.place, dies: true}
			first.Runner = dying
			if err := first.Run(t.Context()); !errors.Is(err, errDead) {
				t.Fatal(err)
			}
			second := s.pipeline(day1, 2, all[:n]...)
			next := &farRunner{Runner: second.Runner, place: s.place}
			second.Runner = next
			s.run(t, second)
			if isSame := n == 2; isSame != (len(next.found) == 1) || isSame != (len(next.abandoned) == 0) {
				t.Errorf("taken over: %v, abandoned: %v", next.found, next.abandoned)
			}
			if n == 1 {
				if left, err := batch.ListFiles(t.Context(), s.place, batch.WorkFolder); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v %v", left, err)
				}
				s.run(t, s.pipeline(day1, 2, all...))
			}
			whole, all := crashSite(t)
			whole.run(t, whole.pipeline(day1, 2, all...))
			if got, want := s.outcome(t, all, day1), whole.outcome(t, all, day1); !slices.Equal(got, want) {
				t.Errorf("%q, not %q", got, want)
			}
		})
	}
}
