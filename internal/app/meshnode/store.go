package meshnode

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"kumo/internal/base/varint"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
)

// A store persists a node's data other than URLs: the record, the chunks, which chunks of seeds are offered, and the
// page counts of nodes. run writes the data in order; flushed reports completion. Without a folder, all of it stays in
// memory.
type store struct {
	disk vfs.FS
	dir  string // "": no folder

	mu     sync.Mutex // guards below
	writes []write
	chunks map[mesh.ChunkID][]byte // not yet on disk
	signal chan struct{}           // capacity 1: signals pending writes
}

// A write is one pending write, or a request to report the completion of earlier ones.
type write struct {
	record *mesh.RecordVersion
	file   string // name of a small file to replace; "": none
	text   []byte // its content
	chunk  mesh.ChunkID
	data   []byte // of the chunk; nil: mark it as offered
	done   chan struct{}
}

const (
	recordFile  = "record"
	countsFile  = "counts.json"
	resultsFile = "reports.json"
	termsFile   = "terms.json"
	chunksDir   = "chunks"
	takenSuffix = ".taken"
)

// A savedChunk is a chunk that an earlier process stored.
type savedChunk struct {
	id    mesh.ChunkID
	kind  byte
	taken bool
}

// openStore reads the data of earlier processes. A chunk whose content does not match its name is removed; other nodes
// have it.
func openStore(disk vfs.FS, dir string, log *slog.Logger) (s *store, r mesh.RecordVersion, all []savedChunk,
	err error) {
	s = &store{disk: disk, dir: dir, chunks: map[mesh.ChunkID][]byte{}, signal: make(chan struct{}, 1)}
	if dir == "" {
		return s, r, nil, nil
	}
	if err := disk.MkdirAll(filepath.Join(dir, chunksDir)); err != nil {
		return nil, r, nil, fmt.Errorf("create the folder of the crawl's record: %w", err)
	}
	if r, err = s.readRecord(); err != nil {
		return nil, r, nil, err
	}
	names, err := disk.List(filepath.Join(dir, chunksDir))
	if err != nil {
		return nil, r, nil, fmt.Errorf("read lists of seeds: %w", err)
	}
	taken := map[string]bool{}
	for _, name := range names {
		if id, is := strings.CutSuffix(name, takenSuffix); is {
			taken[id] = true
		}
	}
	for _, name := range names {
		id, err := hex.DecodeString(name)
		if err != nil || len(id) != xor.Size {
			continue // a mark, or an incomplete file after a crash
		}
		c := savedChunk{id: mesh.ChunkID(id), taken: taken[name]}
		data, err := s.chunk(c.id)
		if err != nil {
			log.Warn("removed a damaged list of seeds; other nodes have it", "err", err)
			if err := disk.Remove(s.chunkFile(c.id)); err != nil {
				return nil, r, nil, err
			}
			continue
		}
		c.kind = data[0]
		all = append(all, c)
	}
	return s, r, all, nil
}

func (s *store) chunkFile(id mesh.ChunkID) string {
	return filepath.Join(s.dir, chunksDir, hex.EncodeToString(id[:]))
}

// writeRecord writes the record's file: a hash of the rest, the version, its author, and the record.
func (s *store) writeRecord(r *mesh.RecordVersion) error {
	var w varint.Writer
	w.Uint(r.Version)
	w.String(string(r.By))
	w = append(w, r.Data...)
	sum := xor.Of("record", string(w))
	if err := vfs.Replace(s.disk, filepath.Join(s.dir, recordFile), append(sum[:], w...)); err != nil {
		return fmt.Errorf("write the crawl's record: %w", err)
	}
	return nil
}

func (s *store) readRecord() (r mesh.RecordVersion, err error) {
	name := filepath.Join(s.dir, recordFile)
	data, err := readFile(s.disk, name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the crawl's record: %w", err)
	}
	sum, rest := data[:min(len(data), xor.Size)], data[min(len(data), xor.Size):]
	want := xor.Of("record", string(rest))
	in := varint.Reader{Rest: rest}
	r.Version, r.By = in.Uint(), strategy.Node(in.String())
	r.Data = in.Rest
	if in.Bad || !bytes.Equal(sum, want[:]) {
		return r, fmt.Errorf("%s is damaged: remove it, and start the node while others run, which send the record again",
			name)
	}
	return r, nil
}

func readFile(disk vfs.FS, name string) ([]byte, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

func (s *store) chunk(id mesh.ChunkID) ([]byte, error) {
	s.mu.Lock()
	data := s.chunks[id]
	s.mu.Unlock()
	if data != nil {
		return data, nil
	}
	data, err := readFile(s.disk, s.chunkFile(id))
	if err == nil && (len(data) == 0 || mesh.ChunkIDOf(data) != id) {
		err = fmt.Errorf("%s is damaged", s.chunkFile(id))
	}
	return data, err
}

func (s *store) putCounts(counts map[strategy.Node]int64) error {
	return s.putJSON(countsFile, counts)
}

func (s *store) putJSON(file string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		s.put(write{file: file, text: data})
	}
	return err
}

// putTerms stores the crawl's terms.
func (s *store) putTerms(t mesh.AgreedTerms) error { return s.putJSON(termsFile, t) }

// terms returns the stored terms; zero if there are none.
func (s *store) terms() (t mesh.AgreedTerms, err error) {
	if s.dir == "" {
		return t, nil
	}
	name := filepath.Join(s.dir, termsFile)
	data, err := readFile(s.disk, name)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		return t, fmt.Errorf("read the crawl's terms %s: %w", name, err)
	}
	return t, nil
}

func (s *store) putResults(all map[strategy.Node]mesh.Result) error {
	return s.putJSON(resultsFile, all)
}

// counts returns the stored page counts.
func (s *store) counts(log *slog.Logger) (counts map[strategy.Node]int64) {
	return byNode[int64](s, countsFile, log)
}

// results returns the stored reports of nodes on the crawl.
func (s *store) results(log *slog.Logger) map[strategy.Node]mesh.Result {
	return byNode[mesh.Result](s, resultsFile, log)
}

// byNode reads stored data of nodes. If it cannot be read, it is ignored; other nodes have it, too.
func byNode[T any](s *store, file string, log *slog.Logger) (all map[strategy.Node]T) {
	if s.dir == "" {
		return nil
	}
	data, err := readFile(s.disk, filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		log.Warn("ignoring stored data of other nodes", "file", file, "err", err)
		return nil
	}
	return all
}

func (s *store) putRecord(r mesh.RecordVersion) { s.put(write{record: &r}) }

func (s *store) putChunk(id mesh.ChunkID, data []byte) { s.put(write{chunk: id, data: data}) }

func (s *store) putTaken(id mesh.ChunkID) { s.put(write{chunk: id}) }

// flushed returns a channel that is closed when all earlier writes are durable.
func (s *store) flushed() <-chan struct{} {
	done := make(chan struct{})
	s.put(write{done: done})
	return done
}

func (s *store) put(w write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.data != nil {
		s.chunks[w.chunk] = w.data
	}
	s.writes = append(s.writes, w)
	wait.Wake(s.signal)
}

// maxWrites is the number of pending writes above which no messages are accepted.
const maxWrites = 256

func (s *store) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.writes) > maxWrites
}

// run writes until ctx ends, and then the rest.
func (s *store) run(ctx context.Context) error {
	for {
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-s.signal:
		}
		for {
			s.mu.Lock()
			all := s.writes
			s.writes = nil
			s.mu.Unlock()
			if len(all) == 0 {
				break
			}
			if err := s.write(all); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
	}
}

func (s *store) write(all []write) error {
	for i, w := range all {
		var err error
		switch {
		case w.done != nil:
			close(w.done)
		case s.dir == "":
		case w.record != nil:
			err = s.writeRecord(w.record)
		case w.file != "":
			err = vfs.Replace(s.disk, filepath.Join(s.dir, w.file), w.text)
		case w.data == nil:
			err = s.writeEmpty(s.chunkFile(w.chunk) + takenSuffix)
		default:
			err = vfs.Replace(s.disk, s.chunkFile(w.chunk), w.data)
			s.mu.Lock()
			delete(s.chunks, w.chunk)
			s.mu.Unlock()
		}
		if err != nil {
			s.mu.Lock()
			s.writes = append(all[i:], s.writes...) // they remain pending
			s.mu.Unlock()
			return fmt.Errorf("write the node's data: %w", err)
		}
	}
	return nil
}

func (s *store) writeEmpty(name string) error {
	f, err := s.disk.Append(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
