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

// An Identity identifies a node for as long as it has its state.
type Identity struct {
	Name        string `json:"name"`
	Incarnation string `json:"life"`   // distinguishes nodes that use the same name one after the other
	Joined      bool   `json:"joined"` // it was a member, or about to be one
}

// publicKeyLength is the length of an incarnation that is a node's public key.
const publicKeyLength = 52

// IsKey reports whether the incarnation is the node's public key, as in a mesh crawl.
func (i Identity) IsKey() bool { return len(i.Incarnation) == publicKeyLength }

// Node returns the identity's name in the cluster.
func (i Identity) Node() strategy.Node { return strategy.Node(i.Name + "~" + i.Incarnation) }

var unsafeInWords = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// CrawlWord converts a crawl's name to a single word, for the cluster.
func CrawlWord(name string) string { return unsafeInWords.ReplaceAllString(name, "-") }

const maxIdentity = 1 << 20 // bytes of the file

// OpenIdentity reads the identity of a folder's node from a file, or creates one. A folder cannot change its node's
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
		return id, fmt.Errorf("read this node's identity: %w", err)
	}
	switch err = json.Unmarshal(data, &id); {
	case err != nil:
		return id, fmt.Errorf("read this node's identity from %s: %w", file, err)
	case name != "" && id.Name != name:
		return id, fmt.Errorf("the folder belongs to the node %q: use the same name or another folder", id.Name)
	}
	return id, id.check()
}

func (i Identity) check() error {
	if i.Name == "" || strings.Contains(i.Name, "~") {
		return fmt.Errorf("%q is not a valid node name: use letters, digits, - and _", i.Name)
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
		return fmt.Errorf("write this node's identity: %w", err)
	}
	if err := vfs.Replace(disk, file, append(data, '\n')); err != nil {
		return fmt.Errorf("write this node's identity: %w", err)
	}
	return nil
}
