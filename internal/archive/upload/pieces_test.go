package upload

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kumo/internal/archive/away"
	"kumo/internal/state/store"
)

// TestALedgerListsWhatIsRecorded records files: a torn line is cut off first, and a reader finds a file when the
// manifest lists it, and a WARC file only with its index.
func TestALedgerListsWhatIsRecorded(t *testing.T) {
	b := newBed(t)
	l := &ledger{cfg: &b.cfg, report: &report{}, manifest: away.NewManifest()}
	entry := func(name string) away.Entry {
		return away.Entry{Name: name, Size: 7, SHA256: hex.EncodeToString(make([]byte, 32))}
	}
	if err := l.record(entry("warc/a.warc.gz")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(b.dir, away.LogName)
	torn, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, append(torn, "half a li"...), 0o644)
	}
	if err == nil {
		err = l.record(entry("warc/a.cdxj"))
	}
	if err != nil {
		t.Fatal(err)
	}
	there, at, err := away.ReadLog(b.cfg.Disk, b.dir)
	if err != nil || at >= 0 || len(there.All()) != 2 || l.report.snapshot().Files != 2 {
		t.Errorf("the log has %v, is torn at %d (%v), and the status is %+v", there.All(), at, err, l.report.snapshot())
	}
	if l.has("warc/a.cdxj") {
		t.Error("a file is found that no manifest lists")
	}
	for _, want := range []bool{true, false} {
		if _, written, err := l.list(t.Context()); err != nil || written != want {
			t.Errorf("the manifest is written: %v (%v)", written, err)
		}
	}
	if !l.has("warc/a.cdxj") || !l.has("warc/a.warc.gz") || l.has("warc/b.cdxj") {
		t.Error("files of the manifest are not found, or others are")
	}
	if err := l.record(entry("warc/b.warc.gz")); err != nil || l.has("warc/b.warc.gz") {
		t.Errorf("a file is found that the manifest does not list (%v)", err)
	}
}

// TestAQueueOrdersFiles lists closed files that are not uploaded, those with the fewest failures first.
func TestAQueueOrdersFiles(t *testing.T) {
	b := newBed(t)
	b.close(1, "one")
	b.close(2, "two")
	b.write("warc/news-00003-vm.cdxj", "index of a file that is open")
	b.write("pages.jsonl", "lines")
	q := newQueue(&b.cfg, away.NewManifest())
	q.tries["warc/news-00001-vm.cdxj"] = 2
	names := func(ending bool) (all []string) {
		todo, err := q.scan(ending)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range todo {
			all = append(all, filepath.Base(f.name))
		}
		return all
	}
	want := []string{"news-00001-vm.warc.gz", "news-00002-vm.cdxj", "news-00002-vm.warc.gz", "news-00001-vm.cdxj"}
	if got := names(false); !slices.Equal(got, want) {
		t.Errorf("%v are listed, not %v", got, want)
	}
	q.there.Put(away.Entry{Name: "warc/news-00002-vm.cdxj", Size: int64(len("index of two"))})
	q.done["warc/news-00002-vm.warc.gz"] = true
	want = []string{"pages.jsonl", "news-00001-vm.warc.gz", "news-00001-vm.cdxj"}
	if got := names(true); !slices.Equal(got, want) {
		t.Errorf("at the end %v are listed, not %v", got, want)
	}
}

// recorded collects the entries that lists record.
type recorded []away.Entry

func (r *recorded) record(all ...away.Entry) error {
	*r = append(*r, all...)
	return nil
}

// TestListsAreUploadedAsTheyGrow uploads a part for each growth of durable lines.
func TestListsAreUploadedAsTheyGrow(t *testing.T) {
	b := newBed(t)
	b.write("pages.jsonl", "one\ntwo\nthr")
	there, done := away.NewManifest(), recorded{}
	l := &lists{cfg: &b.cfg, sender: &sender{&b.cfg, there}, ledger: &done, there: there, contiguous: map[string]bool{},
		durable: map[string]int64{}, sent: map[string]int64{}}
	for _, c := range []struct {
		length int64
		parts  int
	}{{4, 1}, {4, 1}, {8, 2}} {
		if l.grow([]store.Mark{{Name: "pages.jsonl", Length: c.length}, {Name: "other.jsonl", Length: 1 << 40}}) {
			t.Errorf("a few bytes do not wait")
		}
		before := len(done)
		some, err := l.upload(t.Context())
		if err != nil || len(done) != c.parts || some != (len(done) > before) {
			t.Fatalf("at %d bytes %v are uploaded: %v (%v)", c.length, done, some, err)
		}
		for _, e := range done {
			there.Put(e)
		}
	}
	if there.Length("pages.jsonl") != 8 {
		t.Errorf("%d bytes are in the place", there.Length("pages.jsonl"))
	}
	if !l.grow([]store.Mark{{Name: "pages.jsonl", Length: maxUnsent + 9}}) || !l.partsDue() {
		t.Error("much growth waits for a WARC file")
	}
}
