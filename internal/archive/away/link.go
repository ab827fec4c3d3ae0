package away

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
)

// The files in a crawl's folder that say where its record files go, and what is there already.
var (
	LinkName = filepath.Join("state", "place.json")
	LogName  = filepath.Join("state", "place.jsonl") // entries in the order in which they came
)

const maxLink = 1 << 20 // bytes

// A Link is where a crawl's record files go.
type Link struct {
	Place string `json:"place"` // its URL
	URL   string `json:"url"`   // the same with the options by which it is reached; it has no secrets
	ID    string `json:"id"`    // of the crawl, made for this link
	// Pending: it is not known that the place has the crawl's mark, which is what makes it the crawl's.
	Pending bool `json:"pending,omitempty"`
}

// ReadLink reads the link of the crawl in dir; nil if its files stay there.
func ReadLink(dir string) (*Link, error) {
	name := filepath.Join(dir, LinkName)
	data, err := vfs.ReadFile(vfs.OS, name, maxLink)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := &Link{}
	if err = json.Unmarshal(data, l); err == nil && (l.Place == "" || l.URL == "" || l.ID == "") {
		err = errors.New("a field is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: it does not say where the crawl's files go: %w", name, err)
	}
	return l, nil
}

// Write keeps the link in the crawl's folder.
func (l *Link) Write(disk vfs.FS, dir string) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return vfs.Replace(disk, filepath.Join(dir, LinkName), append(data, '\n'))
}

// A Mark says whose place it is.
type Mark struct {
	Crawl   string    `json:"crawl"` // its name
	ID      string    `json:"id"`    // that of its link
	Machine string    `json:"machine"`
	Folder  string    `json:"folder"` // on that machine
	Time    time.Time `json:"time"`   // since when
	// Open: a run has begun then that has not brought all its files.
	Open bool   `json:"open,omitempty"`
	Sum  string `json:"sum"` // of whose it is: a mark that is damaged must not be taken for another's
}

func (m *Mark) sum() string {
	sum := sha256.Sum256([]byte(m.Crawl + "\x00" + m.ID + "\x00" + m.Machine + "\x00" + m.Folder))
	return hex.EncodeToString(sum[:8])
}

// SameCrawl reports whether two marks are those of the same folder's crawl.
func (m *Mark) SameCrawl(of *Mark) bool {
	return m.ID == of.ID && m.Machine == of.Machine && m.Folder == of.Folder
}

func (m *Mark) String() string {
	return fmt.Sprintf("the crawl %q of the folder %s on %s", m.Crawl, m.Folder, m.Machine)
}

const maxMark = 64 << 10

// ReadMark reads a place's mark; nil if it has none.
func ReadMark(ctx context.Context, p place.Place) (*Mark, error) {
	data, err := readSmall(ctx, p, MarkName, maxMark)
	if IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Mark{}
	if err := json.Unmarshal(data, m); err != nil || m.Sum != m.sum() {
		return nil, fmt.Errorf("%s/%s %w", p.URL(), MarkName, ErrMarkUnreadable)
	}
	return m, nil
}

// ErrMarkUnreadable is a mark of which a fault of the place has left nothing that can be read.
var ErrMarkUnreadable = errors.New("does not say whose place this is")

// Write puts the mark into a place.
func (m *Mark) Write(ctx context.Context, p place.Place) error {
	m.Sum = m.sum()
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return WriteSmall(ctx, p, MarkName, append(data, '\n'))
}

// WriteSmall writes a whole file that is small, and sees that the place has it as it was written.
func WriteSmall(ctx context.Context, p place.Place, name string, data []byte) error {
	if err := place.WriteFile(ctx, p, name, data); err != nil {
		return err
	}
	there, err := readSmall(ctx, p, name, int64(len(data)))
	if err == nil && !bytes.Equal(there, data) {
		err = fmt.Errorf("%s/%s: the place has kept something else than was written", p.URL(), name)
	}
	return err
}

// ReadLog reads what the folder dir says that its place has. torn is where a line begins that a crash has left without
// its end; negative: there is none.
func ReadLog(disk vfs.FS, dir string) (m *Manifest, torn int64, err error) {
	name := filepath.Join(dir, LogName)
	data, err := vfs.ReadFile(disk, name, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return NewManifest(), -1, nil
	}
	if err != nil {
		return nil, -1, err
	}
	m, whole, err := Parse(data)
	if err != nil {
		return nil, -1, fmt.Errorf("%s: %w", name, err)
	}
	if torn = int64(whole); whole == len(data) {
		torn = -1
	}
	return m, torn, nil
}
