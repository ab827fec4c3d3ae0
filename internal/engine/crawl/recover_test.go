package crawl

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// A merge decided a URL, which was then fetched; before the merge was durable, a checkpoint of the frontier was. The
// one of seen is older, and offers the URL again: it still counts as done.
func TestWhatAMergeHasDecidedIsNotFetchedAgain(t *testing.T) {
	c := entry.Candidate{Host: "a", Item: item.Item{URL: "http://a/", Kind: page.Anchor}}
	var payload, met, decided entry.Encoder
	payload.Candidate(&c)
	met.Undecided(payload.Writer)
	decided.Found(&c.Item)
	decided.Done(&entry.Done{URL: "http://a/", Visit: stats.Visit{Host: "a", Status: 200}})
	for name, end := range map[string]func(log journal.Journal) []byte{
		"done before the frontier's checkpoint": func(log journal.Journal) []byte { return noteAt(t, log.End()) },
		"done after it":                         func(journal.Journal) []byte { return nil },
	} {
		log := memory.New()
		if err := errors.Join(log.Append(met.Writer), log.Append(decided.Writer)); err != nil {
			t.Fatal(err)
		}
		db, err := seen.Open(vfs.OS, t.TempDir(), seen.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := recovery.Recover(log, recovery.Views{Seen: db, Digests: seen.NewRecent(),
			Frontier: frontier.New(frontier.Config{}),
			Note:     end(log)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Pending() != 0 {
			t.Errorf("%s: it waits again", name)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func noteAt(t *testing.T, at journal.Position) []byte {
	t.Helper()
	text, err := json.Marshal(recovery.Note{Version: recovery.NoteVersion, Position: at})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestVersionsOfTheNote: older and later versions are rejected with an error that names the version.
func TestVersionsOfTheNote(t *testing.T) {
	for text, want := range map[string]string{
		`{"Version":2,"Roots":[{"URL":"http://a.test/","Kind":1,"Root":true}]}`: "an older kumo wrote this crawl's state",
		`{"Version":3}`: "an older kumo wrote this crawl's state",
		`{"Version":5}`: "an older kumo wrote this crawl's state",
		`{"Version":7}`: "a newer kumo wrote it",
	} {
		_, err := recovery.Recover(memory.New(), recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
			Frontier:  frontier.New(frontier.Config{}),
			Abandoned: statefile.OpenAbandoned(vfs.OS, t.TempDir()), Note: []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A journal whose items are encoded as in older versions is rejected, whatever it contains.
func TestAnOlderJournalIsRefused(t *testing.T) {
	log := memory.New()
	if err := log.Append([]byte{'c', 2, 'f', 1, 'a'}); err != nil {
		t.Fatal(err)
	}
	_, err := recovery.Recover(log, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(),
		Frontier: frontier.New(frontier.Config{})})
	if !errors.Is(err, entry.ErrOlder) {
		t.Error(err)
	}
}

// TestWhatRecoveryHasDecidedIsKnownToTheNext: URLs that were undecided when a process was killed are decided by seen
// when the next one starts. That one makes a checkpoint, of which only the frontier's part becomes durable, and is
// killed, too. Then the URL is pending once, or done.
func TestWhatRecoveryHasDecidedIsKnownToTheNext(t *testing.T) {
	const url = "http://a.test/"
	for _, done := range []bool{false, true} {
		dir, log, disk := t.TempDir(), memory.New(), vfstest.NewFaulty(vfs.OS)
		var met, payload entry.Encoder
		payload.Candidate(&entry.Candidate{Host: "a.test", Item: item.Item{URL: url, Kind: page.Anchor}})
		met.Undecided(payload.Writer)
		if err := log.Append(met.Writer); err != nil {
			t.Fatal(err)
		}
		s, end := recoverIn(t, dir, disk, log)
		e := New(Config{}, Parts{Journal: log, Robots: robots.NewCache(robots.Config{})}, s)
		if done {
			visitFirst(t, e)
		}
		disk.SetRoom(0)
		if err := e.Checkpoints.checkpoint(t.Context()); !vfs.IsFull(err) {
			t.Fatalf("the URL database's part was to fail: %v", err)
		}
		end()

		disk.SetRoom(-1)
		s, end = recoverIn(t, dir, disk, log)
		waits := map[string]int{}
		if err := s.Each(func(url string, _ bool) error { waits[url]++; return nil },
			func(err error) { t.Error(err) }); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 0, false: 1}[done]; waits[url] != want {
			t.Errorf("done: %v; it waits %d times, want %d", done, waits[url], want)
		}
		end()
	}
}

// recoverIn recovers the state in dir, whose URL database is on a separate disk.
func recoverIn(t *testing.T, dir string, disk vfs.FS, log journal.Journal) (s *recovery.State, end func()) {
	t.Helper()
	db, err := seen.Open(disk, filepath.Join(dir, "seen"), seen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	front, note, err := frontier.Open(frontier.Config{Dir: filepath.Join(dir, "frontier")})
	if err != nil {
		t.Fatal(err)
	}
	s, err = recovery.Recover(log, recovery.Views{Seen: db, Digests: seen.NewRecent(), Frontier: front,
		Abandoned: statefile.OpenAbandoned(vfs.OS, dir), Note: note})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() {
		t.Helper()
		if err := errors.Join(db.Close(), front.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// visitFirst visits the first URL and answers it.
func visitFirst(t *testing.T, e *Engine) {
	t.Helper()
	v, err := e.frontier.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := batch{visitURL: v.URL, records: []*page.Record{{URL: v.URL}}, done: []*entry.Done{{URL: v.URL,
		Visit: stats.Visit{Host: v.Host, Status: 200}}}}
	if err := e.abandons.commitBatch(&b, nil); err != nil {
		t.Fatal(err)
	}
	e.frontier.Done(v, frontier.Result{Outcome: frontier.Answered})
	e.abandons.ends.clear(v.URL)
}

// TestAVisitThatIsGivenBackIsNotUnderWay: a checkpoint comes between the end of a visit and its removal from ends. When
// its URL is pending again, it is visited.
func TestAVisitThatIsGivenBackIsNotUnderWay(t *testing.T) {
	dir, log := t.TempDir(), memory.New()
	s, end := recoverIn(t, dir, vfs.OS, log)
	e := New(Config{}, Parts{Journal: log, Robots: robots.NewCache(robots.Config{})}, s)
	e.frontier.Push("a.test", item.Item{URL: "http://a.test/"})
	visitFirst(t, e)
	e.abandons.ends.add("http://a.test/") // as before the call of ends.clear
	if err := e.Checkpoints.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	end()
	s, end = recoverIn(t, dir, vfs.OS, log)
	defer end()
	s.Views.Frontier.Restore("a.test", item.Item{URL: "http://a.test/", Recrawl: true})
	if v, err := s.Views.Frontier.Next(t.Context()); err != nil || v.URL != "http://a.test/" {
		t.Errorf("%v, %v", v, err)
	}
}

// TestStateAheadOfTheJournalIsRefused: URLs that the journal lacks would never be fetched.
func TestStateAheadOfTheJournalIsRefused(t *testing.T) {
	log := memory.New()
	if err := log.Append([]byte{'q', 0}); err != nil {
		t.Fatal(err)
	}
	end := uint64(log.End())
	for _, c := range []struct {
		what                      string
		note, known, relies, sums uint64
		refused                   bool
	}{
		{"all at the end", end, end, end, end, false},
		{"all at the beginning", 0, 0, 0, 0, false},
		{"queues", end + 1, 0, 0, 0, true},
		{"known URLs", 0, end + 1, 0, 0, true},
		{"what was decided", 0, 0, end + 1, 0, true},
		{"digests", 0, 0, 0, end + 1, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			db := aheadDB(t, c.known, c.relies)
			digests, err := seen.OpenDigests(vfs.OS, t.TempDir(), seen.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer digests.Close()
			digests.Put([20]byte{1}, seen.Ref{URL: "http://a/"})
			digests.Freeze(c.sums)
			if err := digests.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = recovery.Recover(log, recovery.Views{Seen: db, Digests: digests, Frontier: frontier.New(frontier.Config{}),
				Note: noteAt(t, journal.Position(c.note))})
			if refused := errors.Is(err, recovery.ErrInconsistent); refused != c.refused || !refused && err != nil {
				t.Errorf("refused: %v, want %v: %v", refused, c.refused, err)
			}
		})
	}
}

// aheadDB returns a database at a position, with decisions delivered up to another.
func aheadDB(t *testing.T, at, relies uint64) *seen.DB {
	t.Helper()
	db, err := seen.Open(vfs.OS, t.TempDir(), seen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	tell := func([]seen.Decided) error {
		db.SetRelies(relies)
		return nil
	}
	// A URL with only metadata is in the filter, so an offer of it is undecided.
	db.UpdateMeta("http://a/", seen.Meta{Status: 200})
	db.Freeze(0)
	if err := db.Merge(t.Context(), tell); err != nil {
		t.Fatal(err)
	}
	if news := db.Offer([]seen.URL{{URL: "http://a/", State: seen.Known}}, nil); news[0] != seen.Undecided {
		t.Fatalf("the news is %v", news)
	}
	db.Freeze(at)
	if err := db.DecideAll(t.Context(), tell); err != nil {
		t.Fatal(err)
	}
	return db
}
