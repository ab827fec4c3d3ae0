package meshnode

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/cluster/member/mesh"
)

// keep writes a record and two chunks, and marks one chunk as offered.
func keep(t *testing.T, dir string) (record mesh.RecordVersion, chunks [2]mesh.ChunkID) {
	t.Helper()
	s, _, _, err := openStore(vfs.OS, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- s.run(ctx) }()
	for i := range uint64(3) {
		record = mesh.RecordVersion{Version: i + 1, By: "a~1", Data: []byte("the record, again and again")}
		s.putRecord(record)
	}
	for i, data := range []string{"sone", "rtwo"} {
		chunks[i] = mesh.ChunkIDOf([]byte(data))
		s.putChunk(chunks[i], []byte(data))
	}
	<-s.flushed()
	s.putTaken(chunks[0])
	stop() // pending writes are completed
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	return record, chunks
}

func TestAStoreKeepsAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record, chunks := keep(t, dir)
	if err := os.WriteFile(filepath.Join(dir, chunksDir, "half.tmp"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, r, all, err := openStore(vfs.OS, dir, slog.New(slog.DiscardHandler))
	if err != nil || r.Version != 3 || r.By != record.By || !bytes.Equal(r.Data, record.Data) {
		t.Fatalf("it has %+v, %v", r, err)
	}
	if len(all) != 2 {
		t.Fatalf("it has %d chunks", len(all))
	}
	for _, c := range all {
		want := savedChunk{chunks[0], 's', true}
		if c.id != chunks[0] {
			want = savedChunk{chunks[1], 'r', false}
		}
		if c != want {
			t.Errorf("it has %v, want %v", c, want)
		}
		if data, err := s.chunk(c.id); err != nil || data[0] != c.kind {
			t.Errorf("it reads %q, %v", data, err)
		}
	}
}

// A damaged list of seeds is removed; other nodes have it.
func TestADamagedChunkIsDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, chunks := keep(t, dir)
	s, _, _, _ := openStore(vfs.OS, dir, slog.New(slog.DiscardHandler))
	if err := os.WriteFile(s.chunkFile(chunks[1]), []byte("rtw"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	_, _, all, err := openStore(vfs.OS, dir, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil || len(all) != 1 || all[0].id != chunks[0] {
		t.Errorf("it has %v, %v", all, err)
	}
	if !strings.Contains(said.String(), "damaged") {
		t.Errorf("it says %q", said.String())
	}
	if _, err := os.Stat(s.chunkFile(chunks[1])); err == nil {
		t.Error("it is still there")
	}
}

func TestADamagedRecordIsRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(data []byte) []byte{
		"short":   func(data []byte) []byte { return data[:20] },
		"empty":   func([]byte) []byte { return nil },
		"changed": func(data []byte) []byte { data[len(data)-1]++; return data },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			keep(t, dir)
			file := filepath.Join(dir, recordFile)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, _, err = openStore(vfs.OS, dir, slog.New(slog.DiscardHandler)); err == nil {
				t.Error("it is taken")
			}
		})
	}
}

// A full disk ends the node, and nothing is reported as durable.
func TestAFullDiskIsAnError(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewFaulty(vfs.OS)
	s, _, _, err := openStore(disk, t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(0)
	s.putRecord(mesh.RecordVersion{Version: 1, By: "a~1", Data: []byte("{}")})
	done := s.flushed()
	if err := s.run(t.Context()); !vfs.IsFull(err) {
		t.Errorf("it gives %v", err)
	}
	select {
	case <-done:
		t.Error("it is said to be durable")
	default:
	}
}
