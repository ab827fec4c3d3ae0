package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// Explain on a stalled disk returns the data in memory and how long the disk has not answered. The number of waiting
// queries is limited.
func TestExplainHasSomePatienceWithTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stalls := &Live{DiskTimeout: 5 * time.Second}, make(chan struct{})
		explain := func(tell func(crawl.Explanation)) (*crawl.Explanation, error) {
			e := &crawl.Explanation{HostMet: true}
			e.Host.Pending = 7
			tell(*e)
			<-stalls
			e.GivenUp = "read"
			return e, nil
		}
		begin := time.Now()
		for range maxPending {
			go l.explainWithin(t.Context(), explain)
		}
		synctest.Wait()
		if _, err := l.explainWithin(t.Context(), explain); err == nil || time.Since(begin) > 0 {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
		close(stalls)
		l.Wait()

		stalls = make(chan struct{})
		begin = time.Now()
		x, err := l.explainWithin(t.Context(), explain)
		if err != nil || x.Unread != l.DiskTimeout || x.Host.Waiting != 7 || time.Since(begin) != l.DiskTimeout {
			t.Errorf("%+v, %v after %v", x, err, time.Since(begin))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := l.explainWithin(gone, explain); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left is told %v", err)
		}
		time.AfterFunc(time.Second, func() { close(stalls) })
		if x, err = l.explainWithin(t.Context(), explain); err != nil || x.Unread != 0 || x.GivenUp != "read" {
			t.Errorf("%+v, %v", x, err)
		}
		l.Wait()
	})
}

// Files are not read to the end for a client that has disconnected.
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

// A crawl continues while a client reads a response slowly: a sequence holds no lock between two values.
func TestNobodyWaitsForASlowReader(t *testing.T) {
	dir := t.TempDir()
	f, _, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "frontier"), Memory: 1 << 20,
		Hosts: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	db, err := seen.Open(vfs.OS, filepath.Join(dir, "seen"), seen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 0
	work := func() { // like a crawl
		host := fmt.Sprintf("h%d.test", n%500)
		u := fmt.Sprintf("http://%s/%d", host, n)
		n++
		db.Offer([]seen.URL{{URL: u, State: seen.Known}}, nil)
		f.Push(host, frontier.Item{URL: u})
		f.WaitForRoom(t.Context())
	}
	for range 2000 {
		work()
	}
	db.Freeze(0)
	l := &Live{Frontier: f, Known: db}
	reads := map[string]int{}
	slowly := func(what string, err error) {
		if reads[what]++; err != nil {
			t.Fatal(err)
		}
		work() // would hang if this reader held a lock
	}
	for _, err := range l.Hosts(t.Context(), 20) {
		slowly("hosts", err)
	}
	for _, err := range l.HostsFrom(t.Context(), "h", "", 20) {
		slowly("hosts from", err)
	}
	for _, err := range l.SeenFrom(t.Context(), "http://", "", 20) {
		slowly("seen from", err)
	}
	for _, err := range l.Seen(t.Context(), "http://", 20) {
		slowly("seen", err)
	}
	for _, err := range l.Queue(t.Context(), "h1.test", 2) {
		slowly("queue", err)
	}
	for _, what := range []string{"hosts", "hosts from", "seen from", "seen"} {
		if reads[what] != 20 {
			t.Errorf("%d values of %s were read", reads[what], what)
		}
	}
	if reads["queue"] != 2 {
		t.Errorf("%d of a queue were read", reads["queue"])
	}
}
