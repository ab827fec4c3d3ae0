package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// An Identity is who a node is for as long as it has its state.
type Identity struct {
	Name        string `json:"name"`
	Incarnation string `json:"life"`   // tells apart the lives under one name
	Joined      bool   `json:"joined"` // it was, or was about to be, a member
}

// publicKeyLength is how long a life is that is a node's public key.
const publicKeyLength = 52

// IsKey reports whether the life is the node's public key: it is a node of a crawl without a centre.
func (i Identity) IsKey() bool { return len(i.Incarnation) == publicKeyLength }

// Node is the identity as others know it.
func (i Identity) Node() strategy.Node { return strategy.Node(i.Name + "~" + i.Incarnation) }

var unsafeInWords = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// CrawlWord is a crawl's name as the cluster has it: one word.
func CrawlWord(name string) string { return unsafeInWords.ReplaceAllString(name, "-") }

const maxIdentity = 1 << 20 // bytes of the file

// OpenIdentity reads who a folder's node is from a file, and makes it one if it is nobody yet. A folder belongs to one
// name.
func OpenIdentity(disk vfs.FS, file, name string) (Identity, error) {
	var id Identity
	data, err := vfs.ReadFile(disk, file, maxIdentity)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		id = Identity{Name: name, Incarnation: fmt.Sprintf("%08x", rand.Uint32())}
		if err := id.check(); err != nil {
			return id, err
		}
		return id, id.Save(disk, file)
	case err != nil:
		return id, fmt.Errorf("read who this node is: %w", err)
	}
	switch err = json.Unmarshal(data, &id); {
	case err != nil:
		return id, fmt.Errorf("read who this node is from %s: %w", file, err)
	case name != "" && id.Name != name:
		return id, fmt.Errorf("the folder belongs to the node %q: call this one the same, or give it another folder", id.Name)
	}
	return id, id.check()
}

func (i Identity) check() error {
	if i.Name == "" || strings.Contains(i.Name, "~") {
		return fmt.Errorf("a node cannot be called %q: its name is a word of letters, digits, - and _", i.Name)
	}
	return bus.CheckNode(i.Node())
}

// Save writes the identity durably.
func (i Identity) Save(disk vfs.FS, file string) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(filepath.Dir(file)); err != nil {
		return fmt.Errorf("write who this node is: %w", err)
	}
	if err := vfs.Replace(disk, file, append(data, '\n')); err != nil {
		return fmt.Errorf("write who this node is: %w", err)
	}
	return nil
}
