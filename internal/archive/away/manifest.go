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

// Files in a location that are not record files.
const (
	ManifestName = "manifest.jsonl"
	MarkName     = "crawl.json"
)

// An Entry is a file in a location, as it was when its upload was verified.
type Entry struct {
	Name   string    `json:"name"` // relative to the location and to the crawl's folder
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256"` // in hexadecimal
	Time   time.Time `json:"time"`
}

func (e *Entry) check() error {
	if err := place.ValidName(e.Name); err != nil {
		return err
	}
	if sum, err := hex.DecodeString(e.SHA256); err != nil || len(sum) != 32 || e.Size < 0 {
		return fmt.Errorf("%s: want a size and a SHA-256, have %d and %.80q", e.Name, e.Size, e.SHA256)
	}
	return nil
}

// Line encodes the entry.
func (e *Entry) Line() []byte {
	line, _ := json.Marshal(e) // cannot fail for these types
	return append(line, '\n')
}

// A Manifest lists the files in a location. Its methods are safe for concurrent use.
type Manifest struct {
	mu      sync.RWMutex // guards the fields below
	entries map[string]Entry
	partial map[string]bool // lists that have parts
}

// NewManifest returns the manifest of an empty location.
func NewManifest() *Manifest {
	return &Manifest{entries: map[string]Entry{}, partial: map[string]bool{}}
}

// Put adds a file, and replaces the entry with the same name. A list that is whole also replaces its parts.
func (m *Manifest) Put(e Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(e)
}

func (m *Manifest) put(e Entry) {
	m.entries[e.Name] = e
	if list, _, is := ParsePartName(e.Name); is {
		m.partial[list] = true
	} else if m.partial[e.Name] { // the list is whole now
		delete(m.partial, e.Name)
		maps.DeleteFunc(m.entries, func(name string, _ Entry) bool {
			of, _, is := ParsePartName(name)
			return is && of == e.Name
		})
	}
}

// Get returns the entry of a file.
func (m *Manifest) Get(name string) (Entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, is := m.entries[name]
	return e, is
}

// All returns the entries, sorted by name.
func (m *Manifest) All() []Entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.entries), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
}

// Encode encodes all entries. Parts of a list follow the whole list, in their order.
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

// Parse parses lines of entries. A later entry replaces an earlier one with the same name. whole is the length of the
// complete lines; a log that a crash has torn is longer.
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

const maxManifest = 1 << 30 // bytes; about four million files

// ReadManifest reads the manifest of a location. If there is none, the error is fs.ErrNotExist.
func ReadManifest(ctx context.Context, p place.Place) (*Manifest, error) {
	data, err := readSmall(ctx, p, ManifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	m, whole, err := Parse(data)
	if err == nil && whole < len(data) {
		err = errors.New("the last line is incomplete")
	}
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", p.URL(), ManifestName, err)
	}
	return m, nil
}

// readSmall reads a whole file of at most the given number of bytes.
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

// IsMissing reports whether an error means that a file does not exist.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
