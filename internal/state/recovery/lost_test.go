package recovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// batches is a read-only journal.
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

// A visit's record is in a file named in its batch. If the file is lost, the page is fetched again, even if its host
// belongs to another node by now, and so are pages whose records refer to the lost one. Visits without a response are
// not repeated.
func TestWhatIsLostIsFetchedAgain(t *testing.T) {
	for _, most := range []int64{1 << 20, 2 * item.Weight} { // in memory; from disk
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
		lost := &LostRecords{Disk: vfs.OS, File: filepath.Join(dir, "again"), Safe: func(grown []store.Mark) bool {
			return !slices.ContainsFunc(grown, func(m store.Mark) bool { return m.Name == "gone" })
		}}
		s, err := RecoverFailed(t.Context(), j, Views{Seen: db, Digests: seen.NewRecent(), Frontier: f}, most, lost)
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.BuildHolding(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var waits []string
		for n := range 8 {
			host := fmt.Sprintf("h%d.test", n)
			queue, _ := f.Inspector().Queue(host, 10)
			for range queue {
				waits = append(waits, host)
			}
		}
		if want := []string{"h1.test", "h2.test", "h4.test", "h6.test", "h7.test"}; !slices.Equal(waits, want) {
			t.Errorf("with %d bytes %v wait, want %v", most, waits, want)
		}
		if lost.Pages() != 3 || !h.RefetchHosts["h2.test"] || h.RefetchHosts["h0.test"] {
			t.Errorf("with %d bytes %d pages are lost, at %v", most, lost.Pages(), h.RefetchHosts)
		}
		if err := lost.Close(); err != nil {
			t.Error(err)
		}
		if _, err := vfs.OS.Size(lost.File); err == nil {
			t.Error("its file stays")
		}
	}
}

// A fold is a dead node's journal from which the state is rebuilt, with lost records.
type fold struct {
	t       *testing.T
	all     [][]byte
	at      journal.Position // of an existing checkpoint
	has     []item.Item      // pending items in it
	known   bool             // these are also known
	lost    *LostRecords
	holding *transfer.Holding
}

func (f *fold) found(urls ...string) {
	e := entry.Encoder{}
	for _, url := range urls {
		it := item.FromSeed(url)
		e.Found(&it)
	}
	f.all = append(f.all, e.Writer)
}

// visited ends a visit whose record is in a file, with its own payload or a reference.
func (f *fold) visited(url, file string, status int, digest byte, refers bool) {
	v := entry.Done{URL: url, Visit: stats.Visit{Status: status},
		Meta: seen.Meta{Status: status, Digest: [20]byte{digest}, Fetched: time.Unix(1e9, 0)}}
	if !refers {
		v.Ref = page.Ref{ID: "<urn:x>"}
	}
	e := entry.Encoder{}
	e.Done(&v)
	e.Mark(store.Mark{Name: file, Length: 7})
	f.all = append(f.all, e.Writer)
}

func (f *fold) recrawls(url string) {
	it, e := item.FromSeed(url), entry.Encoder{}
	it.Recrawl = true
	e.Recrawl(&it, time.Unix(2e9, 0))
	f.all = append(f.all, e.Writer)
}

// fold rebuilds the state with a limit of memory for pending items and of the number of digests.
func (f *fold) fold(memory int64, noted int) {
	f.t.Helper()
	dir := f.t.TempDir()
	db, err := seen.Open(vfs.OS, filepath.Join(dir, "seen"), seen.Config{Memory: 1 << 20})
	if err != nil {
		f.t.Fatal(err)
	}
	queues, _, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "frontier"), Memory: 1 << 20})
	if err != nil {
		f.t.Fatal(err)
	}
	f.lost = &LostRecords{Disk: vfs.OS, File: filepath.Join(dir, "again"), digestLimit: noted}
	f.lost.Safe = func(grown []store.Mark) bool {
		return !slices.ContainsFunc(grown, func(m store.Mark) bool { return m.Name == "gone" })
	}
	v := Views{Seen: db, Digests: seen.NewRecent(), Frontier: queues}
	if f.at > 0 {
		v.Note, err = json.Marshal(Note{Version: NoteVersion, Position: f.at})
		for _, it := range f.has {
			queues.Restore(it.Host(), it)
			db.InsertKnown([]seen.URL{{URL: it.URL, State: seen.Known}})
		}
	}
	if f.known {
		db.Freeze(uint64(f.at))
		err = errors.Join(err, db.DecideAll(f.t.Context(), func([]seen.Decided) error { return nil }))
	}
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := RecoverFailed(f.t.Context(), &batches{all: f.all}, v, memory, f.lost)
	if err == nil {
		f.holding, err = s.BuildHolding(f.t.Context())
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		for _, close := range []func() error{queues.Close, db.Close, f.lost.Close} {
			if err := close(); err != nil {
				f.t.Error(err)
			}
		}
	})
}

// exported returns the items sent to another node.
func (f *fold) exported() (all []item.Item) {
	f.t.Helper()
	x, err := f.holding.Export(func(string) strategy.Node { return "b~1" })
	if err != nil {
		f.t.Fatal(err)
	}
	defer x.Close()
	r, err := transfer.NewChunkReader(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for {
		to, data, err := x.Next()
		if err != nil {
			f.t.Fatal(err)
		}
		if to == "" {
			return all
		}
		c, err := r.Read(bytes.Clone(data))
		if err != nil {
			f.t.Fatal(err)
		}
		for i := range c.Pending {
			for _, it := range c.Pending[i].Items {
				it.URL = string([]byte(it.URL))
				all = append(all, it)
			}
		}
	}
}

// A host was handed over just before its node died. Its lost pages that are pending on the disk of the rebuilding node
// are sent to the new owner to be fetched again; other pending items are not.
func TestWhatIsLostOfAHostThatWentIsFetchedAgain(t *testing.T) {
	for _, memory := range []int64{1 << 20, 2 * item.Weight} {
		f := &fold{t: t}
		f.found("http://h.test/1", "http://h.test/2", "http://h.test/3", "http://i.test/1")
		f.visited("http://h.test/1", "gone", 200, 1, false)
		f.visited("http://h.test/2", "kept", 200, 2, false)
		f.fold(memory, 0)
		f.holding.Forget(func(host string, _ uint64) bool { return host == "h.test" })
		var got []string
		for _, it := range f.exported() {
			got = append(got, fmt.Sprint(it.URL, " ", it.Refetch))
		}
		slices.Sort(got)
		if want := []string{"http://h.test/1 true", "http://i.test/1 false"}; !slices.Equal(got, want) {
			t.Errorf("with %d bytes %q go, want %q", memory, got, want)
		}
	}
}

// A page that was visited several times is fetched at most once.
func TestWhatIsLostOfARecrawlIsFetchedOnce(t *testing.T) {
	const url = "http://h.test/"
	visit := func(f *fold, file string) { f.visited(url, file, 200, 1, false) }
	for name, test := range map[string]struct {
		do          func(f *fold)
		again, lost int
	}{
		"both are lost":         {func(f *fold) { visit(f, "gone"); f.recrawls(url); visit(f, "gone") }, 1, 1},
		"the first is lost":     {func(f *fold) { visit(f, "gone"); f.recrawls(url); visit(f, "kept") }, 0, 0},
		"the second is lost":    {func(f *fold) { visit(f, "kept"); f.recrawls(url); visit(f, "gone") }, 1, 1},
		"it waits for the next": {func(f *fold) { visit(f, "gone"); f.recrawls(url) }, 1, 0},
		"both, and it waits again": {func(f *fold) { visit(f, "gone"); f.recrawls(url); visit(f, "gone"); f.recrawls(url) },
			1, 0},
	} {
		for _, memory := range []int64{1 << 20, 0} {
			f := &fold{t: t}
			f.found(url)
			test.do(f)
			f.fold(memory, 0)
			all := f.exported()
			if len(all) != test.again || f.lost.Pages() != int64(test.lost) {
				t.Errorf("%s, with %d bytes: %d wait and %d are lost, want %d and %d", name, memory, len(all), f.lost.Pages(),
					test.again, test.lost)
			}
			for _, it := range all {
				if !it.Refetch && memory == 0 {
					t.Errorf("%s, with %d bytes: what is known of it holds", name, memory)
				}
			}
		}
	}
}

// A page's record is lost. Its host was transferred away, and came back with the page to be fetched again. It is
// fetched once, whether it is in the checkpoint or after it.
func TestWhatIsLostAndComesBackIsFetchedOnce(t *testing.T) {
	const url = "http://h.test/"
	it := item.FromSeed(url)
	it.Refetch = true
	w, err := transfer.NewChunkWriter(time.Unix(2e9, 0), transfer.Sizes{Block: transfer.BlockBytes,
		Chunk: transfer.ChunkBytes})
	if err != nil {
		t.Fatal(err)
	}
	w.BeginPending("h.test", transfer.HostTiming{})
	w.Item(&it)
	chunk := entry.Encoder{}
	chunk.Chunk(entry.Chunk{Transfer: member.Transfer{From: "b~1", Epoch: 3}, Seq: 1, Last: true, Data: string(w.Chunk())})
	went := entry.Encoder{}
	went.HostsForgotten([]string{"h.test"})
	for name, set := range map[string]func(f *fold){
		"behind the checkpoint":        func(*fold) {},
		"in it, but not what is known": func(f *fold) { f.at, f.has = journal.Position(len(f.all)), []item.Item{it} },
		"in it": func(f *fold) {
			f.at, f.has, f.known = journal.Position(len(f.all)), []item.Item{it}, true
		},
	} {
		f := &fold{t: t}
		f.found(url)
		f.visited(url, "gone", 200, 1, false)
		f.all = append(f.all, went.Writer, chunk.Writer)
		set(f)
		f.fold(1<<20, 0)
		if all := f.exported(); len(all) != 1 || !all[0].Refetch {
			t.Errorf("%s: there wait %+v", name, all)
		}
	}
}

// Records that refer to a lost record are lost, too, even of error responses. When the limit of digests is reached, all
// references are assumed lost.
func TestWhatRefersToALostRecord(t *testing.T) {
	for noted, want := range map[int]int64{0: 4, 1: 5} {
		f := &fold{t: t}
		f.found("http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/", "http://e.test/", "http://f.test/")
		f.visited("http://a.test/", "gone", 200, 1, false)
		f.visited("http://b.test/", "gone", 404, 0, false) // of a recrawl, for example, whose digest is not stored
		f.visited("http://c.test/", "kept", 404, 1, true)
		f.visited("http://d.test/", "kept", 200, 1, true)
		f.visited("http://e.test/", "kept", 200, 2, true)
		f.visited("http://f.test/", "kept", 404, 0, true)
		if f.fold(1<<20, noted); f.lost.Pages() != want {
			t.Errorf("%d pages are lost where %d digests are noted, want %d", f.lost.Pages(), noted, want)
		}
	}
}
