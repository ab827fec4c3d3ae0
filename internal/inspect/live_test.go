package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/crawl"
	"kumo/internal/vfs"
)

// Who explains a URL while the disk stalls is told what is known without it, and for how long it has not answered. Only
// so many wait for it.
func TestExplainHasSomePatienceWithTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stalls := &Live{Patience: 5 * time.Second}, make(chan struct{})
		explain := func(tell func(crawl.Explanation)) (*crawl.Explanation, error) {
			e := &crawl.Explanation{HostMet: true}
			e.Host.Waiting = 7
			tell(*e)
			<-stalls
			e.GivenUp = "read"
			return e, nil
		}
		begin := time.Now()
		for range maxLooks {
			go l.patiently(t.Context(), explain)
		}
		synctest.Wait()
		if _, err := l.patiently(t.Context(), explain); err == nil || time.Since(begin) > 0 {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
		close(stalls)
		l.Wait()

		stalls = make(chan struct{})
		begin = time.Now()
		x, err := l.patiently(t.Context(), explain)
		if err != nil || x.Unread != l.Patience || x.Host.Waiting != 7 || time.Since(begin) != l.Patience {
			t.Errorf("%+v, %v after %v", x, err, time.Since(begin))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := l.patiently(gone, explain); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left is told %v", err)
		}
		time.AfterFunc(time.Second, func() { close(stalls) })
		if x, err = l.patiently(t.Context(), explain); err != nil || x.Unread != 0 || x.GivenUp != "read" {
			t.Errorf("%+v, %v", x, err)
		}
		l.Wait()
	})
}

// Who has left is not read files for to the end.
func TestFilesAreReadForWhoIsStillThere(t *testing.T) {
	dir := t.TempDir()
	v := NewView(nil, dir, vfs.OS, false, func() error { return nil })
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pages.jsonl", "skipped.jsonl", filepath.Join("state", "robots.jsonl")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := v.findLines(gone, name, "url", "http://a.example/"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.RobotsAnswer(gone, "http://a.example"); !errors.Is(err, context.Canceled) {
		t.Errorf("robots.txt: %v", err)
	}
}
