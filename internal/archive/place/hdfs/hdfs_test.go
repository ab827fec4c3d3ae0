package hdfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/advice"
	"kumo/internal/content/hadoopconf/hadooptest"
)

func open(t *testing.T, url string, cfg Config) *Place {
	t.Helper()
	cfg.Conf, cfg.Patience = hadooptest.Conf(t), time.Minute
	p, err := Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPlace(t *testing.T) {
	top := hadooptest.TempFolder(t)
	var n atomic.Int32
	placetest.Run(t, func(t *testing.T) place.Place {
		return open(t, top+"/"+string('a'+n.Add(1)), Config{Spool: t.TempDir()})
	})
}

func TestUploads(t *testing.T) {
	top := hadooptest.TempFolder(t)
	var n atomic.Int32
	placetest.RunUploads(t, func(t *testing.T) place.Place {
		return open(t, top+"/"+string('a'+n.Add(1)), Config{Spool: t.TempDir()})
	}, 100_000, 20<<20) // the testbed's blocks are 16 MiB
}

func noise(seed uint64, size int) []byte {
	b := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = rng.Read(b) // never fails
	return b
}

func digest(t *testing.T, p *Place, name string, offset, length int64) [32]byte {
	t.Helper()
	r, err := p.Open(t.Context(), name, offset, length)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return [32]byte(h.Sum(nil))
}

func TestRangesGoAcrossBlocks(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	all := noise(1, 40<<20) // the testbed's blocks are 16 MiB
	if err := place.WriteFile(t.Context(), p, "f", all); err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int64{{0, -1}, {1, 1}, {16<<20 - 1, 2}, {16 << 20, 16 << 20}, {5, 39 << 20}, {39 << 20,
		-1}} {
		end := int64(len(all))
		if r[1] >= 0 {
			end = r[0] + r[1]
		}
		if digest(t, p, "f", r[0], r[1]) != sha256.Sum256(all[r[0]:end]) {
			t.Errorf("%d bytes from %d on are others", r[1], r[0])
		}
	}
}

// If a DataNode dies during a write, the attempt fails, and the next one writes the whole file.
func TestADataNodeDiesDuringAWrite(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	all := noise(2, 48<<20)
	if err := place.WriteFile(t.Context(), p, "old", all); err != nil {
		t.Fatal(err)
	}
	w, err := p.Create(t.Context(), "new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(all); err != nil {
		t.Fatal(err)
	}
	hadooptest.Kill(t, "datanode2")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "old"} {
		if digest(t, p, name, 0, -1) != sha256.Sum256(all) {
			t.Errorf("%s is another file", name)
		}
	}
	if got, err := p.List(t.Context(), ""); err != nil || len(got) != 2 {
		t.Errorf("there is %v: %v", got, err)
	}
	if got := hadooptest.Run(t, "hdfs", "dfs", "-ls", "-R", p.root); strings.Contains(got, ".open") {
		t.Errorf("an attempt was left:\n%s", got)
	}
}

func TestADataNodeDiesDuringARead(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	all := noise(3, 40<<20)
	if err := place.WriteFile(t.Context(), p, "f", all); err != nil {
		t.Fatal(err)
	}
	r, err := p.Open(t.Context(), "f", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, 1<<20)
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	hadooptest.Kill(t, "datanode1")
	rest, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(append(got, rest...), all) {
		t.Errorf("%d bytes were read of %d, or others: %v", len(got)+len(rest), len(all), err)
	}
}

func TestTheNameNodeIsStartedAnew(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	if err := place.WriteFile(t.Context(), p, "f", []byte("before")); err != nil {
		t.Fatal(err)
	}
	hadooptest.Kill(t, "namenode")
	done := make(chan error)
	go func() {
		got, err := place.ReadFile(t.Context(), p, "f")
		if err == nil && string(got) != "before" {
			err = errors.New("another file")
		}
		done <- err
	}()
	hadooptest.Revive(t, "namenode")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := place.WriteFile(t.Context(), p, "g", []byte("after")); err != nil {
		t.Error(err)
	}
}

func TestAFileThatAnotherReplacesIsNotReadOn(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	if err := place.WriteFile(t.Context(), p, "f", noise(4, 1<<20)); err != nil {
		t.Fatal(err)
	}
	r, err := p.Open(t.Context(), "f", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := place.WriteFile(t.Context(), p, "f", noise(5, 1<<20)); err != nil {
		t.Fatal(err)
	}
	in := r.(*reader)
	_ = in.Body.Close() // simulates the death of its DataNode
	in.Body = nil
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, errReplaced) {
		t.Errorf("read on: %v", err)
	}
}

// failing checks an error's kind, and that it names the operation and the object and has advice.
func failing(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("the error is %v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") || advice.Of(err) == "" {
		t.Errorf("%q advises %q", err, advice.Of(err))
	}
}

func TestSafeMode(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	if err := place.WriteFile(t.Context(), p, "f", []byte("before")); err != nil {
		t.Fatal(err)
	}
	hadooptest.Run(t, "hdfs", "dfsadmin", "-safemode", "enter")
	defer hadooptest.Run(t, "hdfs", "dfsadmin", "-safemode", "leave")
	failing(t, place.WriteFile(t.Context(), p, "g", []byte("x")), ErrSafeMode, "write", p.URL())
	failing(t, p.Remove(t.Context(), "f"), ErrSafeMode, "remove")
	failing(t, p.Rename(t.Context(), "f", "g"), ErrSafeMode, "rename")
	if got, err := place.ReadFile(t.Context(), p, "f"); err != nil || string(got) != "before" {
		t.Errorf("read %q: %v", got, err)
	}
}

func TestPermissions(t *testing.T) {
	url := hadooptest.TempFolder(t)
	if err := place.WriteFile(t.Context(), open(t, url, Config{}), "f", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	p := open(t, url, Config{User: "stranger"})
	failing(t, place.WriteFile(t.Context(), p, "g", []byte("x")), fs.ErrPermission, "write", "stranger", p.URL())
	failing(t, place.WriteFile(t.Context(), p, "d/g", []byte("x")), fs.ErrPermission, "stranger")
	failing(t, p.Rename(t.Context(), "f", "g"), fs.ErrPermission, "rename")
	if err := p.Remove(t.Context(), "f"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a stranger removes: %v", err)
	}
}

func TestQuota(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	if err := place.WriteFile(t.Context(), p, "f", []byte("before")); err != nil {
		t.Fatal(err)
	}
	hadooptest.Run(t, "hdfs", "dfsadmin", "-setSpaceQuota", "1m", p.root)
	failing(t, place.WriteFile(t.Context(), p, "g", noise(6, 2<<20)), syscall.ENOSPC, "write", "quota")
	if got, err := p.List(t.Context(), ""); err != nil || len(got) != 1 {
		t.Errorf("there is %v: %v", got, err)
	}
}

func TestAFullFileSystem(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	for _, node := range []hadooptest.Node{"datanode1", "datanode2"} {
		hadooptest.Kill(t, node)
	}
	// Neither can recover while the other is down, so both are revived together.
	hadooptest.ReviveAll(t, []string{"RESERVED=1000000000000000"}, "datanode1", "datanode2")
	failing(t, place.WriteFile(t.Context(), p, "f", []byte("x")), syscall.ENOSPC, "full")
	for _, node := range []hadooptest.Node{"datanode1", "datanode2"} {
		hadooptest.Kill(t, node)
	}
	hadooptest.ReviveAll(t, nil, "datanode1", "datanode2")
	hadooptest.Await(t, time.Minute, "room", func() bool {
		return place.WriteFile(t.Context(), p, "f",
			[]byte("x")) == nil
	})
}

// A file cannot replace a folder, and the error is immediate.
func TestAFolderIsInTheWay(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	if err := place.WriteFile(t.Context(), p, "d/f", nil); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	err := place.WriteFile(t.Context(), p, "d", []byte("x"))
	if took := time.Since(begin); err == nil || took > 20*time.Second || !strings.Contains(err.Error(), "folder") {
		t.Errorf("after %v: %v", took, err)
	}
}

func TestALockIsLostWithItsClient(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	unlock, err := p.Lock(t.Context(), "l")
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(t, p.URL(), Config{}).Lock(t.Context(), "l")
	if !errors.Is(err, place.ErrLocked) || !strings.Contains(err.Error(), "127.0.0.1") ||
		!strings.Contains(err.Error(), "after a minute") {
		t.Errorf("locked twice, or without a word by whom and for how long: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if infos, err := p.List(t.Context(), ""); err != nil || len(infos) != 0 {
		t.Errorf("there is %v: %v", infos, err)
	}
}

func TestNoNameNode(t *testing.T) {
	_, err := Open(t.Context(), "hdfs://127.0.0.1:9/x", Config{})
	if err == nil || !strings.Contains(err.Error(), "no NameNode responds at 127.0.0.1:9") || advice.Of(err) == "" ||
		!place.IsTransient(err) {
		t.Errorf("%v; advice: %q; passes: %v", err, advice.Of(err), place.IsTransient(err))
	}
}

func TestACancelledWriteLeavesNothing(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	ctx, cancel := context.WithCancel(t.Context())
	w, err := p.Create(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Errorf("close: %v", err)
	}
	if got, err := p.List(t.Context(), ""); err != nil || len(got) != 0 {
		t.Errorf("there is %v: %v", got, err)
	}
}

// A process that is killed during an upload leaves a hidden file, which the next upload removes.
func TestAnUploadThatWasKilledLeavesNothing(t *testing.T) {
	p := open(t, hadooptest.TempFolder(t), Config{})
	f, aside, err := p.createTemp(t.Context(), p.root+"/d/f", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("The libr")); err != nil {
		t.Fatal(err)
	}
	data := []byte("The library opens at nine.")
	if err := p.Upload(t.Context(), "d/f", bytes.NewReader(data), int64(len(data)), sha256.Sum256(data)); err != nil {
		t.Fatal(err)
	}
	if got, err := place.ReadFile(t.Context(), p, "d/f"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%q %v", got, err)
	}
	err = p.do(t.Context(), func(client *hdfs.Client) error { _, err := client.Stat(aside); return err })
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", aside, err)
	}
}
