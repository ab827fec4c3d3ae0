package upload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/vfs"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

// A life simulates a node's checkpoints and its log, in which a position is a number of bytes.
type life struct {
	*bed
	dice *rand.Rand
	at   journal.Position

	mu      sync.Mutex
	shipped journal.Position
	trimmed journal.Position
	taken   error                                  // nil: this node owns the log
	files   map[journal.Position]map[string]string // of each checkpoint
	closed  map[journal.Position][]string          // WARC files closed before each checkpoint
	cuts    int
	warned  int
	earlier int // files that a checkpoint shares with an earlier one
}

func newLife(t *testing.T, seed uint64) *life {
	return &life{bed: newBed(t), dice: rand.New(rand.NewPCG(seed, 2)), files: map[journal.Position]map[string]string{},
		closed: map[journal.Position][]string{}}
}

// begin starts a process; end kills it.
func (l *life) begin(least int64) (s *States, end func()) {
	u := l.open()
	s = u.States(StatesConfig{Log: lifesLog{life: l}, MinGain: least, Warn: l.warn})
	ctx, kill := context.WithCancel(l.Context())
	var both sync.WaitGroup
	both.Go(func() { s.Run(ctx) })
	both.Go(func() { _ = u.Run(ctx) })
	synctest.Wait()
	return s, func() { kill(); both.Wait() }
}

// warn counts warnings. The simulated record files need not exist.
func (l *life) warn(err error) {
	l.Log(err)
	if strings.Contains(err.Error(), "no complete checkpoint") {
		l.warned++
	}
}

// last returns the position of the checkpoint in the location.
func (l *life) last() journal.Position {
	l.Helper()
	s, err := away.ReadState(l.Context(), l.bed.at)
	if err != nil || s == nil {
		l.Fatal(s, err)
	}
	return journal.Position(s.Position)
}

// A lifesLog is the log to which the node's journal is shipped.
type lifesLog struct {
	journal.Journal
	*life
}

func (l lifesLog) Ship(_ context.Context, upTo journal.Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shipped = max(l.shipped, upTo)
	return nil
}

func (l lifesLog) Trimmable(before journal.Position) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(before) - int64(min(l.trimmed, before))
}

func (l lifesLog) CheckOwner(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

func (l lifesLog) Start(context.Context) (journal.Position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trimmed, nil
}

// Trim checks that the trimmed part is not needed: the location has a complete later checkpoint, and the records.
func (l lifesLog) Trim(ctx context.Context, before journal.Position) error {
	s := l.whole()
	m, err := away.ReadManifest(l.Context(), l.bed.at)
	for range 60 {
		if err == nil {
			break
		}
		if time.Sleep(time.Second); ctx.Err() != nil { // a checkpoint damaged by a fault is written again
			return ctx.Err()
		}
		m, err = away.ReadManifest(l.Context(), l.bed.at)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == nil || journal.Position(s.Position) < before || journal.Position(s.RequiredPosition) > l.shipped {
		l.Errorf("cut before %d, shipped up to %d, with a checkpoint %+v", before, l.shipped, s)
		return nil
	}
	if err != nil {
		l.Error(err)
		return nil
	}
	for _, name := range l.closed[before] {
		if _, is := m.Get(name); !is {
			l.Errorf("cut before %d, and %s is not in the place", before, name)
		}
	}
	l.trimmed, l.cuts = before, l.cuts+1
	return nil
}

// whole returns the newest checkpoint in the location, and checks that it equals the one in the folder.
func (l *life) whole() *away.State {
	l.Helper()
	s, err := away.ReadState(l.Context(), l.bed.at)
	if s == nil || err != nil {
		if err != nil {
			l.Error(err)
		}
		return nil
	}
	dir, err := os.MkdirTemp(l.TempDir(), "whole")
	if err == nil {
		err = s.Copy(l.Context(), l.bed.at, vfs.OS, dir)
	}
	if err != nil {
		l.Errorf("checkpoint %d: %v", s.Position, err)
		return nil
	}
	got := map[string]string{}
	for _, f := range s.Files {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			l.Error(err)
		}
		got[f.Name] = string(text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range s.Files {
		if !strings.HasPrefix(f.Path, away.StateFolder(s.Position)) {
			l.earlier++
		}
	}
	if want := l.files[journal.Position(s.Position)]; !maps.Equal(got, want) {
		l.Errorf("checkpoint %d has %v, want %v", s.Position, got, want)
	}
	return s
}

// put replaces a file of the state.
func (l *life) put(name, text string) {
	l.write("state/"+name+".new", text)
	to := filepath.Join(l.dir, "state", filepath.FromSlash(name))
	if err := os.Rename(to+".new", to); err != nil {
		l.Fatal(err)
	}
}

// checkpoint creates a checkpoint: it replaces a file, extends one, adds and removes runs, and sometimes closes a WARC
// file.
func (l *life) checkpoint(s *States) {
	l.at += journal.Position(1 + l.dice.IntN(200))
	at := l.at
	l.put("frontier/checkpoint", fmt.Sprint("queues at ", at))
	l.put("seen/manifest", fmt.Sprint("runs at ", at))
	l.put(fmt.Sprintf("seen/%08d.run", at), strings.Repeat("x", l.dice.IntN(100)))
	f, err := os.OpenFile(filepath.Join(l.dir, "state", "frontier", "queue-1"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.Fatal(err)
	}
	if l.dice.IntN(2) == 0 {
		fmt.Fprint(f, at)
	}
	if err := f.Close(); err != nil {
		l.Fatal(err)
	}
	runs, _ := filepath.Glob(filepath.Join(l.dir, "state", "seen", "*.run"))
	if len(runs) > 9 {
		for _, name := range runs[:l.dice.IntN(9)] {
			if err := os.Remove(name); err != nil {
				l.Fatal(err)
			}
		}
	}
	files := map[string]string{}
	for _, room := range away.StateSubdirs {
		names, _ := filepath.Glob(filepath.Join(l.dir, "state", room, "*"))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				l.Fatal(err)
			}
			files[room+"/"+filepath.Base(name)] = string(text)
		}
	}
	open := len(l.files) / 3
	marks := []store.Mark{{Name: fmt.Sprintf("warc/news-%05d-vm.warc.gz.open", open), Length: 9},
		{Name: "crawl.log", Length: 7}}
	for n := range open {
		marks = append(marks, store.Mark{Name: fmt.Sprintf("warc/news-%05d-vm.warc.gz.open", n), Length: 9})
	}
	l.mu.Lock()
	l.files[at] = files
	for _, m := range marks {
		if name, is := strings.CutSuffix(m.Name, ".open"); is {
			l.closed[at] = append(l.closed[at], name)
		}
	}
	l.mu.Unlock()
	l.write(marks[0].Name, "records")
	s.Checkpoint(at, at+3, marks)
	if len(l.files)/3 > open {
		if err := os.Remove(filepath.Join(l.dir, marks[0].Name)); err != nil {
			l.Fatal(err)
		}
		l.close(open, fmt.Sprint("records ", open))
		s.up.FileClosed()
	}
}

// Whatever fails in the location, and whenever the process is killed, it has one complete checkpoint, or none and the
// log is untrimmed. In the end the log is trimmed.
func TestStates(t *testing.T) {
	earlier := 0
	for seed := range uint64(testmain.Rounds(3, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { earlier += states(t, seed) })
		})
	}
	if earlier == 0 {
		t.Error("all was brought again each time")
	}
}

// states simulates a node with several processes. It returns how many files checkpoints shared with earlier ones.
func states(t *testing.T, seed uint64) (earlier int) {
	b := newBed(t)
	l := &life{bed: b, dice: rand.New(rand.NewPCG(seed, 2)), files: map[journal.Position]map[string]string{},
		closed: map[journal.Position][]string{}}
	faulty := placetest.NewFaulty(b.at, rand.New(rand.NewPCG(seed, 3)), 0)
	b.cfg.Place = faulty
	brought := TrimStats{}
	for round := range 6 {
		u := b.open()
		least := int64(-1)
		if seed%2 == 0 {
			least = 100
		}
		s := u.States(StatesConfig{Log: lifesLog{life: l}, MinGain: least})
		ctx, kill := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { s.Run(ctx) })
		both.Go(func() { _ = u.Run(ctx) })
		synctest.Wait()
		faulty.SetChance(60 * round)
		for range 12 {
			l.checkpoint(s)
			time.Sleep(time.Duration(l.dice.IntN(4000)) * time.Millisecond)
		}
		faulty.SetChance(0)
		if round == 5 {
			time.Sleep(time.Hour)
			l.checkpoint(s)
			time.Sleep(time.Hour)
		}
		kill()
		both.Wait()
		cut := s.TrimStats()
		brought.States, brought.Files = brought.States+cut.States, brought.Files+cut.Files
		if l.whole() == nil && l.trimmed > 0 {
			t.Errorf("seed %d: the log is cut before %d, and no checkpoint is in the place", seed, l.trimmed)
		}
	}
	if brought.States == 0 || l.cuts == 0 || l.trimmed < l.at/2 {
		t.Errorf("seed %d: %+v; of %d bytes of the log %d are cut off", seed, brought, l.at, l.trimmed)
	}
	var left []string
	s := l.whole()
	err := place.Walk(t.Context(), b.at, away.StateDir, func(name string, _ place.Info) error {
		left = append(left, name)
		return nil
	})
	if err != nil || s == nil || len(left) != len(s.Files)+1 {
		t.Errorf("seed %d: the place has %q, of %+v (%v)", seed, left, s, err)
	}
	return l.earlier
}

// A checkpoint that costs more than it saves is not uploaded.
func TestAStateThatIsNotWorthIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, 1)
		s, end := l.begin(0)
		for range 20 {
			l.checkpoint(s)
			synctest.Wait()
		}
		if s.TrimStats() != (TrimStats{}) || l.cuts > 0 {
			t.Errorf("%+v", s.TrimStats())
		}
		l.at += 2 << 20
		l.checkpoint(s)
		for range 5 { // uploaded after the next files are closed
			l.checkpoint(s)
			synctest.Wait()
		}
		if cut := s.TrimStats(); cut.States != 1 || l.trimmed < 2<<20 {
			t.Errorf("%+v, cut before %d", cut, l.trimmed)
		}
		end()
		if err := s.RemoveAll(t.Context()); err != nil || l.whole() != nil {
			t.Errorf("it stays: %v", err)
		}
	})
}

// Checkpoints cannot be removed while the location is unreachable.
func TestWhatIsForgottenIsLeftInAPlaceThatIsDown(t *testing.T) {
	b := newLateBed(t)
	s := b.open().States(StatesConfig{})
	if err := s.RemoveAll(t.Context()); !errors.Is(err, placetest.ErrFault) {
		t.Errorf("it is said to be gone: %v", err)
	}
}

// A mutePlace accepts everything except the manifest.
type mutePlace struct {
	place.Place
	mute atomic.Bool
}

func (p *mutePlace) Create(ctx context.Context, name string) (place.Writer, error) {
	if name == away.ManifestName && p.mute.Load() {
		return nil, errors.New("no")
	}
	return p.Place.Create(ctx, name)
}

// A node that takes over treats records that the manifest does not list as lost. The log is therefore not trimmed
// before the manifest lists them.
func TestALogIsKeptUntilTheManifestNamesTheRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		mute := &mutePlace{Place: b.at}
		b.cfg.Place = mute
		l := &life{bed: b, dice: rand.New(rand.NewPCG(1, 2)), files: map[journal.Position]map[string]string{},
			closed: map[journal.Position][]string{}}
		u := b.open()
		s := u.States(StatesConfig{Log: lifesLog{life: l}, MinGain: -1})
		ctx, kill := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { s.Run(ctx) })
		both.Go(func() { _ = u.Run(ctx) })
		synctest.Wait()
		mute.mute.Store(true)
		for range 12 {
			l.checkpoint(s)
			synctest.Wait()
		}
		if _, there := u.Manifest().Get("warc/news-00000-vm.warc.gz"); !there || l.cuts > 0 {
			t.Errorf("a file is there: %v; cut %d times", there, l.cuts)
		}
		mute.mute.Store(false)
		time.Sleep(time.Hour)
		l.checkpoint(s)
		synctest.Wait()
		if l.cuts == 0 {
			t.Error("named, it is not cut")
		}
		kill()
		both.Wait()
	})
}

// The log is not trimmed either beyond records that the crawl's sinks do not have.
func TestALogIsKeptUntilTheSinksHaveTheRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, 1)
		u, sent := l.open(), atomic.Bool{}
		s := u.States(StatesConfig{Log: lifesLog{life: l}, MinGain: -1, Sent: func([]store.Mark) bool { return sent.Load() }})
		ctx, kill := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { s.Run(ctx) })
		both.Go(func() { _ = u.Run(ctx) })
		for range 12 {
			l.checkpoint(s)
			synctest.Wait()
			time.Sleep(time.Hour)
		}
		if l.cuts > 0 {
			t.Errorf("cut %d times before anything was sent", l.cuts)
		}
		sent.Store(true)
		l.checkpoint(s)
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.cuts == 0 {
			t.Error("not cut although all is sent")
		}
		kill()
		both.Wait()
	})
}

// If a record file is moved away, the log is not trimmed until it is back, with a warning.
func TestARecordFileThatIsMovedAwayIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		l := &life{bed: b, dice: rand.New(rand.NewPCG(3, 4)), files: map[journal.Position]map[string]string{},
			closed: map[journal.Position][]string{}}
		u := b.open()
		var warned []string
		s := u.States(StatesConfig{Log: lifesLog{life: l}, MinGain: -1, Warn: func(err error) {
			warned = append(warned, err.Error())
		}})
		ctx, kill := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { s.Run(ctx) })
		both.Go(func() { _ = u.Run(ctx) })
		synctest.Wait()
		const name, kept = "warc/news-00500-vm.warc.gz", "kept"
		marks := []store.Mark{{Name: name + ".open", Length: 9}}
		b.write(name+".open", "grows")
		l.at++
		s.Checkpoint(l.at, l.at, marks)
		synctest.Wait()
		if u.Status().State.MissingHint() != "" || len(warned) > 0 {
			t.Errorf("a file that grows is missed: %q", warned)
		}
		move := func(from, to string) {
			if err := os.Rename(filepath.Join(b.dir, from), filepath.Join(b.dir, to)); err != nil {
				t.Fatal(err)
			}
		}
		move(name+".open", kept)
		b.close(501, "another")
		u.FileClosed()
		synctest.Wait()
		if x := u.Status().State; x.MissingCount != 1 || !strings.Contains(x.MissingHint(), name+" is missing") ||
			len(warned) != 1 || !strings.HasSuffix(warned[0], x.MissingHint()) {
			t.Errorf("%+v, warned of %q", x, warned)
		}
		move(kept, name)
		b.write("warc/news-00500-vm.cdxj", "index")
		u.FileClosed()
		synctest.Wait()
		if x := u.Status().State; x.MissingHint() != "" || len(warned) != 1 {
			t.Errorf("it is back, and %+v, warned of %q", x, warned)
		}
		kill()
		both.Wait()
	})
}

// If the checkpoint for which the log was trimmed is damaged in the location, the next one replaces it at any cost, and
// the log is not trimmed further before.
func TestACheckpointThatIsGoneFromThePlace(t *testing.T) {
	for what, spoil := range map[string]func(l *life) error{
		"nothing": func(*life) error { return nil },
		"all":     func(l *life) error { return l.bed.at.Remove(l.Context(), away.StateDir) },
		"its file": func(l *life) error {
			return place.WriteFile(l.Context(), l.bed.at, fmt.Sprintf("%s/%016x.json", away.StateDir, uint64(l.last())),
				[]byte("{"))
		},
		"a run": func(l *life) error {
			all, err := filepath.Glob(filepath.Join(l.dir, "state", "seen", "*.run"))
			if err != nil || len(all) == 0 {
				return fmt.Errorf("%d runs, %w", len(all), err)
			}
			return place.Walk(l.Context(), l.bed.at, away.StateDir, func(name string, _ place.Info) error {
				if filepath.Base(name) == filepath.Base(all[0]) {
					return l.bed.at.Remove(l.Context(), name)
				}
				return nil
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t, 1)
				run := func(f func(s *States)) {
					s, end := l.begin(0)
					f(s)
					end()
				}
				run(func(s *States) {
					l.checkpoint(s)
					l.at += 2 << 20
					for range 6 {
						l.checkpoint(s)
						synctest.Wait()
					}
					if cut := s.TrimStats(); cut.States != 1 || l.trimmed < 2<<20 {
						t.Fatalf("%+v, cut before %d", cut, l.trimmed)
					}
				})
				if err := spoil(l); err != nil {
					t.Fatal(err)
				}
				warned := l.warned
				run(func(s *States) {
					l.checkpoint(s)
					synctest.Wait()
					n := 1
					if what == "nothing" {
						n = 0
					}
					if cut := s.TrimStats(); cut.States != n || l.warned-warned != n {
						t.Errorf("%+v were brought, %d warnings, want %d", cut, l.warned-warned, n)
					}
					if l.whole() == nil || n == 1 && l.last() != l.at {
						t.Errorf("the place has %+v", l.whole())
					}
				})
			})
		})
	}
}

// A node that was declared dead, and does not know it yet, writes no checkpoint: the node that took over has removed
// the uploaded one.
func TestACheckpointOfANodeThatWasFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, 1)
		s, end := l.begin(-1)
		defer end()
		l.mu.Lock()
		l.taken = errors.New("the log is sealed")
		l.mu.Unlock()
		for range 6 {
			l.checkpoint(s)
			synctest.Wait()
		}
		if all, err := l.bed.at.List(t.Context(), away.StateDir); err != nil || len(all) > 0 || s.TrimStats().States > 0 {
			t.Errorf("%+v are there (%v)", all, err)
		}
	})
}

// A checkpoint whose files are missing or changed locally is discarded, and the next one is uploaded.
func TestACheckpointThatCannotBeBrought(t *testing.T) {
	for what, spoil := range map[string]func(name string) error{
		"gone":    os.Remove,
		"shorter": func(name string) error { return os.Truncate(name, 1) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLife(t, 1)
				faulty := placetest.NewFaulty(l.bed.at, rand.New(rand.NewPCG(1, 3)), 0)
				l.cfg.Place = faulty
				s, end := l.begin(-1)
				defer end()
				faulty.SetDown(errors.New("503"))
				s.mu.Lock()
				s.forceNext = true
				s.mu.Unlock()
				l.checkpoint(s)
				synctest.Wait()
				all, err := filepath.Glob(filepath.Join(l.dir, stagingName, "frontier.checkpoint"))
				if err != nil || len(all) != 1 {
					t.Fatal(all, err)
				}
				if err := spoil(all[0]); err != nil {
					t.Fatal(err)
				}
				faulty.SetDown(nil)
				time.Sleep(time.Hour)
				for range 6 {
					l.checkpoint(s)
					synctest.Wait()
				}
				if s.TrimStats().States == 0 || l.whole() == nil {
					t.Errorf("%+v", s.TrimStats())
				}
			})
		})
	}
}

// A clingyPlace fails to remove files.
type clingyPlace struct {
	place.Place
	clings atomic.Bool
}

func (p *clingyPlace) Remove(ctx context.Context, name string) error {
	if p.clings.Load() {
		return errors.New("503")
	}
	return p.Place.Remove(ctx, name)
}

// Files of earlier checkpoints are removed as soon as the location allows it, also by the next process.
func TestWhatEarlierCheckpointsHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, 1)
		p := &clingyPlace{Place: l.bed.at}
		l.cfg.Place = p
		wantFiles := func(tidy bool) {
			t.Helper()
			n := 0
			err := place.Walk(t.Context(), l.bed.at, away.StateDir, func(string, place.Info) error { n++; return nil })
			if whole := l.whole(); err != nil || whole == nil || (n == len(whole.Files)+1) != tidy {
				t.Errorf("%d files, of the checkpoint %+v (%v)", n, whole, err)
			}
		}
		s, end := l.begin(-1)
		p.clings.Store(true)
		for range 15 {
			l.checkpoint(s)
			time.Sleep(time.Hour)
		}
		if s.TrimStats().States < 2 {
			t.Fatalf("%+v", s.TrimStats())
		}
		wantFiles(false)
		p.clings.Store(false)
		time.Sleep(time.Hour)
		wantFiles(true)
		p.clings.Store(true)
		for range 6 {
			l.checkpoint(s)
			time.Sleep(time.Hour)
		}
		wantFiles(false)
		end()
		p.clings.Store(false)
		_, end = l.begin(-1)
		defer end()
		wantFiles(true)
	})
}
