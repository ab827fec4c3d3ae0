package nodes

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// The wait for a dead node's storage location is limited over all attempts to recover it, and its pages are counted
// once.
func TestAFoldThatIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := inproc.New(1).Join("a~1")
		if err != nil {
			t.Fatal(err)
		}
		down := errors.New("no route to the place")
		n := &Node{Config: Config{PlaceWait: time.Minute, Log: slog.New(slog.DiscardHandler),
			ReadManifest: func(context.Context, string) (*away.Manifest, error) { return away.NewManifest(), down }}}
		p := failedPlaces{Node: n, bus: b}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		if _, err := p.read(ctx, "b~1", "file:///place/b~1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := p.read(t.Context(), "b~1", "file:///place/b~1"); err != nil || time.Since(begun) != time.Minute {
				t.Errorf("given up after %v (%v)", time.Since(begun), err)
			}
		}
		down = nil
		if _, err := p.read(t.Context(), "b~1", "file:///place/b~1"); err != nil {
			t.Error(err)
		}
		down, begun = errors.New("away again"), time.Now()
		if _, err := p.read(t.Context(), "b~1", "file:///place/b~1"); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("given up after %v (%v), away once more", time.Since(begun), err)
		}
		lost := lostPage(t)
		for _, dead := range []strategy.Node{"b~1", "b~1", "c~1"} {
			p.add(t.Context(), dead, lost)
		}
		if n.Refetched() != 2 {
			t.Errorf("%d pages are fetched again, want 2", n.Refetched())
		}
	})
}

// lostPage returns lost records of a single page.
func lostPage(t *testing.T) *recovery.LostRecords {
	t.Helper()
	dir := t.TempDir()
	db, err := seen.Open(vfs.OS, filepath.Join(dir, "seen"), seen.Config{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	it, log, e := item.FromSeed("http://h.test/"), memory.New(), entry.Encoder{}
	e.Found(&it)
	e.Done(&entry.Done{URL: it.URL, Visit: stats.Visit{Status: 200}, Ref: page.Ref{ID: "<urn:x>"}})
	lost := &recovery.LostRecords{Disk: vfs.OS, File: filepath.Join(dir, "again"),
		Safe: func([]store.Mark) bool { return false }}
	if err := log.Append(e.Writer); err != nil {
		t.Fatal(err)
	}
	s, err := recovery.RecoverFailed(t.Context(), log, recovery.Views{Seen: db, Digests: seen.NewRecent(),
		Frontier: frontier.New(frontier.Config{})}, 1<<20, lost)
	if err == nil {
		_, err = s.BuildHolding(t.Context())
	}
	if err := errors.Join(err, lost.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return lost
}

// A node that ends warns about pending files of earlier incarnations.
func TestANodeThatEndsSaysWhatWaits(t *testing.T) {
	var said strings.Builder
	n := &Node{job: &job.Job{Dir: t.TempDir()}, Config: Config{Log: slog.New(slog.NewTextHandler(&said, nil)),
		NewUploader: func(context.Context, *job.Job, string) (session.Uploader, error) { return nil, errors.New("down") }}}
	for _, life := range []string{"there", "waits"} {
		dir := filepath.Join(n.job.Dir, lostFolder(life))
		if err := os.MkdirAll(filepath.Join(dir, "state"), 0o755); err != nil {
			t.Fatal(err)
		}
		link := away.Link{Place: "file:///place/" + life, URL: "file:///place/" + life, ID: life}
		if err := link.Write(vfs.OS, dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(n.job.Dir, lostFolder("there"), uploadedName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.warnPending()
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, lostFolder("waits")) {
		t.Errorf("it says %q", text)
	}
}

// A node that starts after it left logs which records its sinks lack, and the command that sends them.
func TestRestartAfterLeavingWithUnsentRecords(t *testing.T) {
	var said strings.Builder
	dir := t.TempDir()
	n := &Node{job: &job.Job{Dir: dir}, disk: vfs.OS, Config: Config{Name: "a",
		Log: slog.New(slog.NewTextHandler(&said, nil))}}
	f, err := folder.Open(t.Context(), vfs.OS, dir, folder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := node.OpenIdentity(vfs.OS, f.Path("state", folder.NodeFile), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteReport(&stats.Report{Ended: node.EndReason(node.ErrLeft),
		Sinks: []stats.Sink{{Sink: "kafka://k/t", Waiting: 3}, {Sink: "hbase://h/t"}}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	n.logRestart(node.ErrLost)
	want := "records=3 do=\"kumo export --to kafka://k/t " + filepath.Join(dir, lostFolder(id.Incarnation))
	if text := said.String(); !strings.Contains(text, want) || strings.Contains(text, "hbase") {
		t.Errorf("%s\nwant %s", text, want)
	}
}
