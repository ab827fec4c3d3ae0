package recovery

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"kumo/internal/entry"
	"kumo/internal/frontier"
	"kumo/internal/item"
	"kumo/internal/journal"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/vfs"
)

// batches are a journal that is only read.
type batches struct {
	journal.Journal
	all [][]byte
}

func (b *batches) End() journal.Position { return journal.Position(len(b.all)) }

func (b *batches) Replay(_ journal.Position, f func([]byte, journal.Position) error) error {
	for i, batch := range b.all {
		if err := f(batch, journal.Position(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// A visit's record is in a file that its batch names. What is in a file that is gone is fetched again, be it of a host
// that others have by now, and what refers to such a record, too; what was not answered is not.
func TestWhatIsLostIsFetchedAgain(t *testing.T) {
	for _, most := range []int64{1 << 20, 2 * item.Weight} { // in memory; from the disk
		dir := t.TempDir()
		db, err := seen.Open(vfs.OS, filepath.Join(dir, "seen"), seen.Config{Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "frontier"), Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		found := entry.Encoder{}
		for n := range 8 {
			it := item.FromSeed(fmt.Sprintf("http://h%d.test/", n))
			found.Found(&it)
		}
		done := func(status int, digest byte, refers bool, file string, ns ...int) []byte {
			e := entry.Encoder{}
			for _, n := range ns {
				v := entry.Done{URL: fmt.Sprintf("http://h%d.test/", n), Visit: stats.Visit{Status: status, Duplicate: refers},
					Meta: seen.Meta{Status: status, Digest: [20]byte{digest}}}
				if !refers && status > 0 {
					v.Ref = page.Ref{ID: "<urn:x>"}
				}
				e.Done(&v)
			}
			e.Mark(store.Mark{Name: file, Length: 7})
			return e.Writer
		}
		went := entry.Encoder{}
		went.HostsForgotten([]string{"h2.test"})
		j := &batches{all: [][]byte{found.Writer, done(200, 1, false, "kept", 0), done(200, 2, false, "gone", 1, 2),
			done(0, 0, false, "gone", 3), done(200, 2, true, "kept", 4), done(200, 1, true, "kept", 5), went.Writer}}
		lost := &Lost{Disk: vfs.OS, File: filepath.Join(dir, "again"), Safe: func(grown []store.Mark) bool {
			return !slices.ContainsFunc(grown, func(m store.Mark) bool { return m.Name == "gone" })
		}}
		s, err := RecoverFailed(t.Context(), j, Views{Seen: db, Digests: seen.NewRecent(), Frontier: f}, most, lost)
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Fold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var waits []string
		for n := range 8 {
			host := fmt.Sprintf("h%d.test", n)
			queue, _ := f.Queue(host, 10)
			for range queue {
				waits = append(waits, host)
			}
		}
		if want := []string{"h1.test", "h2.test", "h4.test", "h6.test", "h7.test"}; !slices.Equal(waits, want) {
			t.Errorf("with %d bytes %v wait, want %v", most, waits, want)
		}
		if lost.Pages() != 3 || !h.Again["h2.test"] || h.Again["h0.test"] {
			t.Errorf("with %d bytes %d pages are lost, at %v", most, lost.Pages(), h.Again)
		}
		if err := lost.Close(); err != nil {
			t.Error(err)
		}
		if _, err := vfs.OS.Size(lost.File); err == nil {
			t.Error("its file stays")
		}
	}
}
