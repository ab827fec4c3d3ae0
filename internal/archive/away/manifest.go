// Package away reads crawls whose record files are in a storage location, such as a bucket. It reads the list of
// uploaded files, and provides a disk that reads files from the location if this machine does not have them.
//
// Files have the same names in the location as in the crawl's folder ("warc/X.warc.gz", "pages.jsonl"). The location
// also contains files of its own:
//
//   - [ManifestName] lists the uploaded files, one per line.
//   - [MarkName] identifies the crawl that owns the location.
//   - [PartsDir] contains the parts by which lists have grown since a run uploaded them whole.
//   - [StateDir] contains checkpoints of a node's state.
package away

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"kumo/internal/archive/place"
)

// The files in a place that are no record files.
const (
	ManifestName = "manifest.jsonl"
	MarkName     = "crawl.json"
)

// An Entry is a file in a place, as it was when it was found to be there.
type Entry struct {
	Name   string    `json:"name"` // relative to the place, and to the crawl's folder
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256"` // in hexadecimal
	Time   time.Time `json:"time"`
}

func (e *Entry) check() error {
	if err := place.ValidName(e.Name); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(e.SHA256); err != nil || len(sum) != 32 || e.Size < 0 {
		return fmt.Errorf("%s: a size and a SHA-256 are wanted, not %d and %.80q", e.Name, e.Size, e.SHA256)
	}
	return nil
}

// Line is the entry as it is written.
func (e *Entry) Line() []byte {
	line, _ := json.Marshal(e) // which has nothing that cannot be written
	return append(line, '\n')
}

// A Manifest is what lies in a place. Its methods may be called by many goroutines at once.
type Manifest struct {
	mu      sync.RWMutex // guards what follows
	entries map[string]Entry
	partial map[string]bool // lists of which there are parts
}

// NewManifest is that of an empty place.
func NewManifest() *Manifest {
	return &Manifest{entries: map[string]Entry{}, partial: map[string]bool{}}
}

// Put takes a file in, in place of what had its name. A list that is whole takes the place of its parts, too.
func (m *Manifest) Put(e Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(e)
}

func (m *Manifest) put(e Entry) {
	m.entries[e.Name] = e
	if list, _, is := ParsePartName(e.Name); is {
		m.partial[list] = true
	} else if m.partial[e.Name] { // it is whole now
		delete(m.partial, e.Name)
		maps.DeleteFunc(m.entries, func(name string, _ Entry) bool { of, _, is := ParsePartName(name); return is && of == e.Name })
	}
}

// Get is the entry of a file.
func (m *Manifest) Get(name string) (Entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, is := m.entries[name]
	return e, is
}

// All are the entries, by name.
func (m *Manifest) All() []Entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.entries), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
}

// Encode writes all of it: parts of a list behind the whole, as they came.
func (m *Manifest) Encode() []byte {
	var b, parts []byte
	for _, e := range m.All() {
		if IsPart(e.Name) {
			parts = append(parts, e.Line()...)
		} else {
			b = append(b, e.Line()...)
		}
	}
	return append(b, parts...)
}

// Parse reads lines of entries, of which a later one replaces an earlier one of its name. whole is how many bytes are
// whole lines: a log that a crash has torn has more.
func Parse(data []byte) (m *Manifest, whole int, err error) {
	m = NewManifest()
	for {
		line, _, ended := bytes.Cut(data[whole:], []byte("\n"))
		if !ended {
			return m, whole, nil
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, whole, fmt.Errorf("at byte %d: %w", whole, err)
		}
		if err := e.check(); err != nil {
			return nil, whole, fmt.Errorf("at byte %d: %w", whole, err)
		}
		m.put(e)
		whole += len(line) + 1
	}
}

const maxManifest = 1 << 30 // bytes; some four million files

// ReadManifest reads what a place says that it has. One without a manifest is an error that is fs.ErrNotExist.
func ReadManifest(ctx context.Context, p place.Place) (*Manifest, error) {
	data, err := readSmall(ctx, p, ManifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	m, whole, err := Parse(data)
	if err == nil && whole < len(data) {
		err = errors.New("the last line has no end")
	}
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", p.URL(), ManifestName, err)
	}
	return m, nil
}

// readSmall reads a whole file of at most so many bytes.
func readSmall(ctx context.Context, p place.Place, name string, most int64) ([]byte, error) {
	r, err := p.Open(ctx, name, 0, most+1)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s/%s has more than %d bytes", p.URL(), name, most)
	}
	return data, errors.Join(err, r.Close())
}

// IsMissing reports whether an error says that a file is not there.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
