package stream_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"kumo/internal/state/journal"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/journal/stream"
)

// behind returns the batches of a log after a position, and the number of earlier ones that were read. It checks their
// positions.
func behind(t *testing.T, l *logs, from journal.Position, put map[journal.Position]string) (got []string, early int,
	err error) {
	t.Helper()
	last := journal.Position(0)
	err = stream.Replay(t.Context(), l, name, from, func(b []byte, end journal.Position) error {
		if put[end] != string(b) || end <= last {
			t.Errorf("%d bytes up to %d, behind %d", len(b), end, last)
		}
		if last = end; end <= from {
			early++
			return nil
		}
		got = append(got, string(b))
		return nil
	})
	return got, early, err
}

// A trimmed log can be read from the position of the trim, whatever it still returns from before. From an earlier
// position it is reported as too short. The writer continues as before, also after a restart.
func TestTrim(t *testing.T) {
	for l, local := newLogs(), memory.New(); len(l.raw(name)) < 2; { // created once, outside of bubbles
		check(t, open(t, local, l, stream.Config{}).Close())
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 8))
			l, local := newLogs(), memory.New()
			l.any = rand.New(rand.NewPCG(seed, 9))
			if seed%3 == 0 {
				l.any = nil
			}
			if seed%2 == 0 {
				l.dice = rand.New(rand.NewPCG(seed, 3))
			}
			put, ends := map[journal.Position]string{}, []journal.Position{0}
			trimmed := journal.Position(0)
			j := open(t, local, l, stream.Config{})
			for range 60 {
				size := 1 + dice.IntN(300)
				if dice.IntN(8) == 0 {
					size = 400_000 + dice.IntN(1_000_000)
				}
				b := large(dice.Uint64(), size)
				check(t, j.Append(b))
				put[j.End()], ends = string(b), append(ends, j.End())
				if dice.IntN(3) == 0 {
					check(t, j.Ship(t.Context(), j.End()))
				}
				switch dice.IntN(6) {
				case 0:
					at := ends[dice.IntN(len(ends))]
					was, kept := j.Trimmable(j.End()), j.Trimmable(at)
					trimmed = max(trimmed, at)
					if j.Trim(t.Context(), at) != nil {
						break // the log was unreachable; the trim may have taken effect
					}
					if now := j.Trimmable(j.End()); was-kept > now || now < 0 {
						t.Errorf("seed %d: %d bytes are kept, %d less %d were", seed, now, was, kept)
					}
				case 1:
					check(t, j.Close())
					j = open(t, local, l, stream.Config{})
				}
			}
			check(t, j.Ship(t.Context(), j.End()))
			check(t, j.Close())
			for range 10 {
				i := dice.IntN(len(ends))
				got, _, err := behind(t, l, ends[i], put)
				if ends[i] < trimmed && (errors.Is(err, journal.ErrDropped) || errors.Is(err, stream.ErrDamaged)) {
					continue // it was trimmed, and may return some of the trimmed entries
				}
				var want []string
				for _, end := range ends[i+1:] {
					want = append(want, put[end])
				}
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("seed %d: from %d of %d, trimmed to %d: %d batches, want %d (%v)", seed, ends[i], j.End(), trimmed,
						len(got),
						len(want), err)
				}
			}
			if at := seal(t, l); at != j.End() || seal(t, l) != at {
				t.Errorf("seed %d: sealed at %d, which ends at %d", seed, at, j.End())
			}
		})
	}
}

func TestALogThatIsTooShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, local, put := newLogs(), memory.New(), map[journal.Position]string{}
		j := open(t, local, l, stream.Config{})
		var ends []journal.Position
		for _, b := range []string{"one", "two", "three"} {
			check(t, j.Append([]byte(b)))
			check(t, j.Ship(t.Context(), j.End()))
			put[j.End()], ends = b, append(ends, j.End())
		}
		kept := j.Trimmable(ends[1])
		if at, err := j.Start(t.Context()); at != 0 || err != nil {
			t.Errorf("it begins at %d (%v)", at, err)
		}
		check(t, j.Trim(t.Context(), ends[1]))
		if at, err := j.Start(t.Context()); at != ends[1] || err != nil {
			t.Errorf("trimmed to %d it begins at %d (%v)", ends[1], at, err)
		}
		if now := j.Trimmable(ends[1]); kept <= 0 || now != 0 {
			t.Errorf("%d bytes were kept, %d are", kept, now)
		}
		check(t, j.CheckOwner(t.Context()))
		check(t, j.Close())
		next := open(t, local, l, stream.Config{})
		if err := j.CheckOwner(t.Context()); !errors.Is(err, stream.ErrFenced) {
			t.Errorf("opened again: %v", err)
		}
		if got, early, err := behind(t, l, ends[1], put); err != nil || early > 0 || !slices.Equal(got, []string{"three"}) {
			t.Errorf("%q, %d before (%v)", got, early, err)
		}
		if _, _, err := behind(t, l, ends[0], put); !errors.Is(err, journal.ErrDropped) {
			t.Errorf("from before where it begins: %v", err)
		}
		seal(t, l)
		if err := next.CheckOwner(t.Context()); !errors.Is(err, stream.ErrSealed) {
			t.Errorf("sealed: %v", err)
		}
		check(t, next.Close())
	})
}
