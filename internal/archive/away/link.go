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

// Files in a crawl's folder that record where its record files are uploaded, and which of them are uploaded already.
var (
	LinkName = filepath.Join("state", "place.json")
	LogName  = filepath.Join("state", "place.jsonl") // entries in order of upload
)

const maxLink = 1 << 20 // bytes

// A Link records where a crawl's record files are uploaded.
type Link struct {
	Place string `json:"place"` // its URL
	URL   string `json:"url"`   // the URL with its options; it has no secrets
	ID    string `json:"id"`    // identifies the crawl; created for this link
	// Pending is true until the location is known to have the crawl's mark, which makes it the crawl's location.
	Pending bool `json:"pending,omitempty"`
}

// ReadLink reads the link of the crawl in dir. It returns nil if the files stay in the folder.
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
		err = errors.New("a member is missing")
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not name the storage location of the crawl's files: %w", name, err)
	}
	return l, nil
}

// Write saves the link in the crawl's folder.
func (l *Link) Write(disk vfs.FS, dir string) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return vfs.Replace(disk, filepath.Join(dir, LinkName), append(data, '\n'))
}

// A Mark identifies the crawl that owns a location.
type Mark struct {
	Crawl   string    `json:"crawl"` // the crawl's name
	ID      string    `json:"id"`    // ID of the crawl's link
	Machine string    `json:"machine"`
	Folder  string    `json:"folder"` // on that machine
	Time    time.Time `json:"time"`   // when the last run claimed the location
	// Open is true from the start of a run until all its files are uploaded.
	Open bool   `json:"open,omitempty"`
	Sum  string `json:"sum"` // checksum: a damaged mark must not be taken for another crawl's
}

func (m *Mark) sum() string {
	sum := sha256.Sum256([]byte(m.Crawl + "\x00" + m.ID + "\x00" + m.Machine + "\x00" + m.Folder))
	return hex.EncodeToString(sum[:8])
}

// SameCrawl reports whether two marks are of the same crawl in the same folder.
func (m *Mark) SameCrawl(of *Mark) bool {
	return m.ID == of.ID && m.Machine == of.Machine && m.Folder == of.Folder
}

func (m *Mark) String() string {
	return fmt.Sprintf("the crawl %q of the folder %s on %s", m.Crawl, m.Folder, m.Machine)
}

const maxMark = 64 << 10

// ReadMark reads the mark of a location. It returns nil if there is none.
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

// ErrMarkUnreadable means that a location's mark is damaged.
var ErrMarkUnreadable = errors.New("does not identify the crawl of this location")

// Write writes the mark to a location.
func (m *Mark) Write(ctx context.Context, p place.Place) error {
	m.Sum = m.sum()
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return WriteSmall(ctx, p, MarkName, append(data, '\n'))
}

// ErrReadBack means that a file that was just written has other content when it is read.
var ErrReadBack = errors.New("the location does not return the bytes that were written")

// WriteSmall writes a small file, and reads it back to check it. If they differ, it returns [ErrReadBack].
func WriteSmall(ctx context.Context, p place.Place, name string, data []byte) error {
	if err := place.WriteFile(ctx, p, name, data); err != nil {
		return err
	}
	there, err := readSmall(ctx, p, name, int64(len(data)))
	if err == nil && !bytes.Equal(there, data) {
		err = fmt.Errorf("%s/%s: %w", p.URL(), name, ErrReadBack)
	}
	return err
}

// ReadLog reads the list of uploaded files from the folder dir. torn is the offset of an incomplete last line left by a
// crash; it is negative if there is none.
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
