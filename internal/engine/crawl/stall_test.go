package crawl

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/member"
	"kumo/internal/state/transfer"
)

// A stallingDisk blocks reads, or syncs, of some files between stall and resume.
type stallingDisk struct {
	vfs.FS
	mu    sync.Mutex
	files string        // files whose names contain this stall
	met   chan struct{} // closed by the first blocked call
	over  chan struct{} // closed by resume; nil: not stalling
}

func (d *stallingDisk) stall(files string) (met <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files, d.met, d.over = files, make(chan struct{}), make(chan struct{})
	return d.met
}

func (d *stallingDisk) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		close(d.over)
		d.over = nil
	}
}

func (d *stallingDisk) wait(name string) {
	d.mu.Lock()
	over := d.over
	if over != nil && strings.Contains(filepath.ToSlash(name), d.files) {
		select {
		case <-d.met:
		default:
			close(d.met)
		}
	} else {
		over = nil
	}
	d.mu.Unlock()
	if over != nil {
		<-over
	}
}

func (d *stallingDisk) OpenAt(name string) (vfs.ReaderAt, error) {
	f, err := d.FS.OpenAt(name)
	return &stallingReader{f, d, name}, err
}

func (d *stallingDisk) Append(name string) (vfs.File, error) {
	f, err := d.FS.Append(name)
	return &stallingFile{f, d, name}, err
}

type stallingReader struct {
	vfs.ReaderAt
	disk *stallingDisk
	name string
}

func (f *stallingReader) ReadAt(p []byte, off int64) (int, error) {
	f.disk.wait(f.name)
	return f.ReaderAt.ReadAt(p, off)
}

type stallingFile struct {
	vfs.File
	disk *stallingDisk
	name string
}

func (f *stallingFile) Sync() error {
	f.disk.wait(f.name)
	return f.File.Sync()
}

// goesOn checks that do finishes while a disk stalls, and ends the stall if it does not.
func (d *stallingDisk) goesOn(t *testing.T, what string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second): // the test fails
		d.resume()
		t.Fatalf("%s waits for the disk: %v", what, <-done)
	}
}

// While the merge of a chunk waits for the disk, workers commit, and batches are written. URLs that become pending or
// are visited during this time are not added again with the chunk, and a host that becomes held here stays if the
// transfer is dropped.
func TestAMergeThatReadsHoldsNobodyBack(t *testing.T) {
	for name, more := range map[string]bool{"no other host comes to be held": false, "another host does": true} {
		t.Run(name, func(t *testing.T) { mergeWhileTheDiskStalls(t, more) })
	}
}

func mergeWhileTheDiskStalls(t *testing.T, more bool) {
	disk := &stallingDisk{FS: vfs.OS}
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	n.close()
	n.below = disk
	n.open()
	x.owner = map[string]int{"held.test": 0, "comes.test": 1, "later.test": 0}
	visit := func(url string) {
		t.Helper()
		x.urls[url] = &fact{host: item.HostOf(url)}
		if err := n.link(url); err != nil {
			t.Fatal(err)
		}
		for !x.urls[url].done {
			n.visit()
		}
	}
	visit("http://held.test/done")
	if err := n.e.Checkpoints.checkpoint(t.Context()); err != nil { // so that the URL is on disk and not in memory
		t.Fatal(err)
	}
	stalls := disk.stall("/seen/")
	defer disk.resume()
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	chunk := waitingChunk(t, "http://comes.test/", "http://held.test/done", "http://held.test/visited",
		"http://held.test/found", "http://held.test/new",
		"http://later.test/found", "http://later.test/new")
	taken := make(chan error, 1)
	go func() { taken <- takeWhole(t.Context(), n.e, from, 0, false, chunk) }()
	<-stalls
	disk.goesOn(t, "a cut", n.e.ledger.Commit)
	if more {
		disk.goesOn(t, "a worker", func() error { return n.link("http://later.test/found") })
	}
	visit("http://held.test/visited")
	disk.goesOn(t, "a worker", func() error { return n.link("http://held.test/found") })
	disk.resume()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	held, later := []string{"http://held.test/found", "http://held.test/new"},
		[]string{"http://later.test/found", "http://later.test/new"}
	n.wantWaiting("under way", slices.Concat(held, later, []string{"http://comes.test/"}))
	if err := n.e.Transfers().Drop(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	gone := []string{"comes.test", "later.test"}
	if more {
		held, gone = append(held, later...), gone[:1]
	}
	n.wantWaiting("dropped", held, gone...)
	n.sameState("dropped", len(held))
	n.wantWaiting("in the next life", held, gone...)
}

// A transfer of many hosts is undone in short steps. A node that crashes in between undoes the rest in its next life.
func TestADropGoesPartByPart(t *testing.T) {
	x := newTrade(t, 1, false)
	n := x.nodes[0]
	from := member.Transfer{From: "n1~1", To: "n0~1", Epoch: 3, Attempt: 1}
	x.owner = map[string]int{}
	var urls []string
	for i := range transfer.ForgetStep + 10 {
		host := fmt.Sprintf("h%04d.test", i)
		x.owner[host] = 1
		urls = append(urls, "http://"+host+"/")
	}
	if err := takeWhole(t.Context(), n.e, from, 0, false, waitingChunk(t, urls...)); err != nil {
		t.Fatal(err)
	}
	first := n.e.Dispatches.transfer.Unsettled.DroppedHosts(from)[:transfer.ForgetStep]
	if err := errors.Join(n.e.Transfers().DropPart(first), n.e.ledger.FlushDurable(t.Context())); err != nil {
		t.Fatal(err)
	}
	n.wantWaiting("after a part", urls[transfer.ForgetStep:], first...)
	n.sameState("after a part", 10) // opening the node drops the rest
	n.wantWaiting("in the next life", nil, slices.Sorted(maps.Keys(x.owner))...)
}
