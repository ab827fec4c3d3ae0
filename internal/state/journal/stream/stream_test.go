package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/journal/journaltest"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/journal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const name = "journal/a~1"

func TestContract(t *testing.T) {
	for _, lag := range []int64{1, 0} { // one batch at a time; unlimited
		t.Run(fmt.Sprint("lag ", lag), func(t *testing.T) {
			journaltest.Run(t, func(t *testing.T) journaltest.Open {
				dir, l := filepath.Join(t.TempDir(), "journal"), newLogs()
				return func(disk vfs.FS) (journal.Journal, error) {
					local, err := file.Open(disk, dir, file.Config{Segment: 300})
					if err != nil {
						return nil, err
					}
					return stream.Open(t.Context(), local, l, name, stream.Config{MaxLag: lag})
				}
			})
		})
	}
}

func open(t *testing.T, local journal.Journal, l *logs, cfg stream.Config) *stream.Journal {
	t.Helper()
	j, err := stream.Open(t.Context(), local, l, name, cfg)
	check(t, err)
	return j
}

func seal(t *testing.T, l *logs) journal.Position {
	t.Helper()
	at, err := stream.Seal(t.Context(), l, name)
	check(t, err)
	return at
}

func openFile(t *testing.T, dir string) *file.Journal {
	t.Helper()
	j, err := file.Open(vfs.OS, dir, file.Config{Segment: 2000})
	check(t, err)
	return j
}

// shipped returns the batches in the log.
func shipped(t *testing.T, l *logs) (all []string, end journal.Position) {
	t.Helper()
	check(t, stream.Replay(t.Context(), l, name, 0, func(b []byte, at journal.Position) error {
		all, end = append(all, string(b)), at
		return nil
	}))
	return all, end
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// large returns a batch that compresses badly.
func large(seed uint64, n int) []byte {
	b := make([]byte, n)
	c := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = c.Read(b)
	return b
}

func TestWhatIsAppendedIsShippedInOrder(t *testing.T) {
	l, local := newLogs(), memory.New()
	j := open(t, local, l, stream.Config{})
	var want []string
	for i := range 40 {
		b := large(uint64(i), 1+i*i*800) // the last one has 1.2 MB
		want = append(want, string(b))
		check(t, j.Append(b))
	}
	check(t, j.Ship(t.Context(), j.End()))
	if j.Shipped() != j.End() || j.Lag() != 0 {
		t.Errorf("shipped to %d of %d, lag %d", j.Shipped(), j.End(), j.Lag())
	}
	check(t, j.Close())
	got, end := shipped(t, l)
	if !slices.Equal(got, want) || end != local.End() {
		t.Errorf("%d batches up to %d in the log, want %d equal ones up to %d", len(got), end, len(want), local.End())
	}
}

func TestSmallBatchesAreJoined(t *testing.T) {
	l, local := newLogs(), memory.New()
	for range 1000 {
		check(t, local.Append([]byte("a small one")))
	}
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l.before = func(string, []byte) { <-gate }
		go func() { gate <- struct{}{} }() // the entry that opens the log
		j := open(t, local, l, stream.Config{})
		synctest.Wait()
		close(gate)
		check(t, j.Ship(t.Context(), j.End()))
		check(t, j.Close())
	})
	if n := len(l.raw(name)); n > 3 {
		t.Errorf("%d entries for 1000 small batches", n)
	}
}

// Whatever fails, and whenever the process dies, the log contains a prefix of the local journal, and in the end all of
// it.
func TestTheLogFollowsWhateverFails(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) { follow(t, seed) })
	}
}

func follow(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 1))
	l, dir := newLogs(), t.TempDir()
	l.dice = rand.New(rand.NewPCG(seed, 2))
	var want []string
	for life := range 8 {
		j := open(t, openFile(t, dir), l, stream.Config{MaxLag: 1 << 20})
		for range dice.IntN(12) {
			size := dice.IntN(2000)
			if dice.IntN(8) == 0 {
				size *= 600
			}
			b := fmt.Sprintf("life %d %s", life, large(seed, size))
			want = append(want, b)
			check(t, j.Append([]byte(b)))
			if dice.IntN(3) == 0 {
				check(t, j.Drop(j.End()))
			}
			if dice.IntN(4) == 0 {
				time.Sleep(time.Duration(dice.IntN(3000)) * time.Millisecond)
			}
		}
		check(t, j.Close())
		if got, _ := shipped(t, l); !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("seed %d: %d batches in the log, %d in the journal, and they differ", seed, len(got), len(want))
		}
	}
	j := open(t, openFile(t, dir), l, stream.Config{})
	check(t, j.Ship(t.Context(), j.End()))
	check(t, j.Close())
	if got, _ := shipped(t, l); !slices.Equal(got, want) {
		t.Fatalf("seed %d: %d batches in the log, want %d", seed, len(got), len(want))
	}
}

func TestAppendWaitsWhileTheLogIsFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var warned []error
		l := newLogs()
		j := open(t, memory.New(), l, stream.Config{MaxLag: 100, Warn: func(err error) { warned = append(warned, err) }})
		l.cutOff(true)
		check(t, j.Append(large(1, 99)))
		check(t, j.Append(large(2, 99)))
		done := make(chan error)
		go func() { done <- j.Append(large(3, 99)) }()
		time.Sleep(time.Hour)
		select {
		case <-done:
			t.Error("it was appended while the log lacked 198 bytes, more than 100")
		default:
		}
		l.cutOff(false)
		check(t, <-done)
		check(t, j.Ship(t.Context(), j.End()))
		check(t, j.Close())
		if len(warned) != 1 {
			t.Errorf("warned: %v", warned)
		}
	})
}

func TestAppendWaitsWhileTheLogIsLongBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs()
		j := open(t, memory.New(), l, stream.Config{MaxAge: 5 * time.Second})
		time.Sleep(time.Minute)
		l.cutOff(true)
		for range 5 {
			check(t, j.Append([]byte("a")))
			if j.Late() {
				t.Error("late at once")
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Millisecond)
		if !j.Late() {
			t.Error("the log has nothing of five seconds, and is not late")
		}
		done := make(chan error)
		go func() { done <- j.Append([]byte("b")) }()
		time.Sleep(time.Hour)
		select {
		case <-done:
			t.Error("it was appended while the log had nothing of the last hour")
		default:
		}
		l.cutOff(false)
		check(t, <-done)
		check(t, j.Append([]byte("c"))) // the log has all earlier batches, or soon will
		check(t, j.Ship(t.Context(), j.End()))
		if j.Late() {
			t.Error("late, and the log has all")
		}
		check(t, j.Close())
	})
}

func TestWhoEndsWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, local := newLogs(), memory.New()
		j := open(t, local, l, stream.Config{MaxLag: 1})
		l.cutOff(true)
		check(t, j.Append([]byte("one")))
		done := make(chan error)
		go func() { done <- j.Append([]byte("two")) }()
		synctest.Wait()
		j.BeginShutdown()
		check(t, <-done)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := j.Ship(short, j.End()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shipped while cut off: %v", err)
		}
		check(t, j.Close())
		if err := j.Ship(t.Context(), j.End()); !errors.Is(err, stream.ErrClosed) {
			t.Errorf("shipped when closed: %v", err)
		}
		l.cutOff(false)
		j = open(t, local, l, stream.Config{})
		check(t, j.Ship(t.Context(), j.End()))
		check(t, j.Close())
		if got, _ := shipped(t, l); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("in the log: %q", got)
		}
	})
}

func TestNothingIsDroppedBeforeItIsShipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, local := newLogs(), memory.New()
		j := open(t, local, l, stream.Config{})
		check(t, j.Append([]byte("one")))
		check(t, j.Ship(t.Context(), j.End()))
		one := j.End()
		l.cutOff(true)
		check(t, j.Append([]byte("two")))
		check(t, j.Drop(j.End()))
		check(t, j.Close())
		if err := local.Replay(0, nil); !errors.Is(err, journal.ErrDropped) {
			t.Errorf("what is shipped was kept: %v", err)
		}
		var left []string
		check(t, local.Replay(one, func(b []byte, _ journal.Position) error { left = append(left, string(b)); return nil }))
		if !slices.Equal(left, []string{"two"}) {
			t.Errorf("left: %q", left)
		}
	})
}

func TestASealEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, local := newLogs(), memory.New()
		j := open(t, local, l, stream.Config{})
		check(t, j.Append([]byte("one")))
		check(t, j.Ship(t.Context(), j.End()))
		seal(t, l)
		seal(t, l)                        // a second time, as after a crash
		check(t, j.Append([]byte("two"))) // the writer does not know it yet
		if err := j.Ship(t.Context(), j.End()); !errors.Is(err, stream.ErrSealed) {
			t.Errorf("Ship: %v", err)
		}
		end := j.End()
		if err := j.Append([]byte("three")); !errors.Is(err, stream.ErrSealed) || j.End() != end {
			t.Errorf("Append: %v", err)
		}
		check(t, j.Close())
		if _, err := stream.Open(t.Context(), local, l, name, stream.Config{}); !errors.Is(err, stream.ErrSealed) {
			t.Errorf("Open: %v", err)
		}
		if got, _ := shipped(t, l); !slices.Equal(got, []string{"one"}) {
			t.Errorf("in the log: %q", got)
		}
	})
}

// Batches for which Ship has returned are in a log that is sealed meanwhile, and none are added later.
func TestASealAgainstAWriter(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			l := newLogs()
			l.dice = rand.New(rand.NewPCG(seed, 3))
			j := open(t, memory.New(), l, stream.Config{})
			promised, ended := 0, make(chan struct{})
			go func() {
				defer close(ended)
				for i := 0; ; i++ {
					if j.Append(fmt.Appendf(nil, "batch %d", i)) != nil || j.Ship(t.Context(), j.End()) != nil {
						return
					}
					promised = i + 1
				}
			}()
			time.Sleep(time.Duration(seed) * 300 * time.Millisecond)
			seal(t, l)
			got, _ := shipped(t, l)
			<-ended
			check(t, j.Close())
			if after, _ := shipped(t, l); !slices.Equal(got, after) || len(got) < promised {
				t.Errorf("seed %d: %d promised, %d in the sealed log, %d a little later", seed, promised, len(got), len(after))
			}
		})
	}
}

func TestAnotherProcessFences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, local := newLogs(), memory.New()
		first := open(t, local, l, stream.Config{})
		check(t, first.Append([]byte("one")))
		check(t, first.Ship(t.Context(), first.End()))
		second := open(t, local, l, stream.Config{})
		check(t, first.Append([]byte("two")))
		if err := first.Ship(t.Context(), first.End()); !errors.Is(err, stream.ErrFenced) {
			t.Errorf("Ship: %v", err)
		}
		check(t, first.Close())
		check(t, second.Close())
	})
}

// The last entry of a dead process may arrive while the next process opens the log.
func TestLateEntriesOfAnEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, local := newLogs(), memory.New()
		j := open(t, local, l, stream.Config{})
		l.cutOff(true)
		var late []byte
		l.before = func(_ string, data []byte) { late = bytes.Clone(data) }
		check(t, j.Append([]byte("one")))
		synctest.Wait()
		check(t, j.Close())
		l.cutOff(false)
		l.before = func(string, []byte) { // between Last and Append of the new process
			l.before = nil
			_, err := l.Append(t.Context(), name, late, 1)
			check(t, err)
		}
		j = open(t, local, l, stream.Config{})
		check(t, j.Append([]byte("two")))
		check(t, j.Ship(t.Context(), j.End()))
		check(t, j.Close())
		if got, _ := shipped(t, l); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("in the log: %q", got)
		}
	})
}

func TestALocalJournalThatLacksWhatWasShipped(t *testing.T) {
	l, dir := newLogs(), t.TempDir()
	j := open(t, openFile(t, dir), l, stream.Config{})
	for _, b := range []string{"one", "two", "three"} {
		check(t, j.Append([]byte(b)))
	}
	check(t, j.Ship(t.Context(), j.End()))
	check(t, j.Close())
	segment := filepath.Join(dir, "0000000000000000.log")
	size, err := vfs.OS.Size(segment)
	check(t, err)
	check(t, os.Truncate(segment, size-1))
	local := openFile(t, dir)
	defer func() { check(t, local.Close()) }()
	if _, err := stream.Open(t.Context(), local, l, name, stream.Config{}); !errors.Is(err, stream.ErrLost) {
		t.Errorf("Open: %v", err)
	}
}

func TestAnUnreachableLogIsNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogs()
		l.cutOff(true)
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := stream.Open(short, memory.New(), l, name, stream.Config{}); !errors.Is(err, errAway) {
			t.Errorf("Open: %v", err)
		}
	})
}

func TestDamageIsFound(t *testing.T) {
	l := newLogs()
	j := open(t, memory.New(), l, stream.Config{})
	for i := range 3 {
		check(t, j.Append(large(uint64(i), 1_200_000)))
	}
	check(t, j.Ship(t.Context(), j.End()))
	check(t, j.Close())
	whole := l.raw(name)
	none := func([]byte, journal.Position) error { return nil }
	for i := 1; i < len(whole)-1; i++ { // the first entry has no batches and is not needed
		l.all[name] = slices.Delete(slices.Clone(whole), i, i+1)
		if err := stream.Replay(t.Context(), l, name, 0, none); !errors.Is(err, stream.ErrDamaged) {
			t.Errorf("without entry %d: %v", i, err)
		}
		flipped := bytes.Clone(whole[i])
		flipped[len(flipped)/2] ^= 1
		l.all[name] = slices.Replace(slices.Clone(whole), i, i+1, flipped)
		if err := stream.Replay(t.Context(), l, name, 0, none); !errors.Is(err, stream.ErrDamaged) {
			t.Errorf("with a bit of entry %d flipped: %v", i, err)
		}
	}
}

func TestAnErrorOfTheReaderEndsAReplay(t *testing.T) {
	l := newLogs()
	j := open(t, memory.New(), l, stream.Config{})
	check(t, j.Append([]byte("one")))
	check(t, j.Ship(t.Context(), j.End()))
	check(t, j.Close())
	enough := errors.New("enough")
	if err := stream.Replay(t.Context(), l, name, 0,
		func([]byte, journal.Position) error { return enough }); !errors.Is(err,
		enough) {
		t.Error(err)
	}
}
