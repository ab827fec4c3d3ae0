package tier

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
)

const (
	manifestName = "manifest"
	runSuffix    = ".run"
	magic        = "kumo runs 1"
	family       = "kumo runs "
)

// A Manifest is the list of runs on disk. Its file has a line with version and checksum, then JSON.
type Manifest struct {
	Position uint64 // journal position that the runs include
	Relies   uint64 // the journal has the decided URLs up to this position, which may be after Position
	Keys     int64  // counted by the owner
	Born     int64  // creation time, in Unix seconds
	Runs     []Run  // from the newest to the oldest
	Waiting  []Run  // from the newest to the oldest
	Cuts     []Cut  `json:",omitempty"`
}

// A Cut deletes keys from all runs up to one: those that have Value's bits where Mask has ones.
type Cut struct {
	Value, Mask []byte // of equal length, for the beginning of a key; shorter keys are not deleted
	Upto        uint64 // ID of the newest of those runs
}

// Cut deletes keys from all current runs: those that have value's bits where mask has ones. Call it in a change that
// adds a run without such keys. The keys take space until the runs are merged.
func (m *Manifest) Cut(value, mask []byte) {
	c := Cut{Value: value, Mask: mask}
	for _, r := range m.Runs {
		c.Upto = max(c.Upto, r.ID)
	}
	m.Cuts = append(m.Cuts, c)
}

func (c *Cut) has(id uint64, key []byte) bool {
	if id > c.Upto || len(key) < len(c.Mask) {
		return false
	}
	for i, m := range c.Mask {
		if (key[i]^c.Value[i])&m != 0 {
			return false
		}
	}
	return true
}

// covers reports whether this cut deletes all keys that another one deletes.
func (c *Cut) covers(o *Cut) bool {
	if c.Upto < o.Upto || len(c.Mask) > len(o.Mask) {
		return false
	}
	for i, m := range c.Mask {
		if o.Mask[i]&m != m || (c.Value[i]^o.Value[i])&m != 0 {
			return false
		}
	}
	return true
}

// needed returns the cuts that apply to some run and are not covered by a later one.
func needed(cuts []Cut, runs []Run) (all []Cut) {
	for i, c := range cuts {
		old := slices.ContainsFunc(runs, func(r Run) bool { return r.ID <= c.Upto })
		if old && !slices.ContainsFunc(cuts[i+1:], func(later Cut) bool { return later.covers(&c) }) {
			all = append(all, c)
		}
	}
	return all
}

// A Run is one file.
type Run struct {
	ID   uint64
	Tier int
}

func (r Run) file() string { return fmt.Sprintf("%08d%s", r.ID, runSuffix) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readManifest reads the manifest at name; it returns the zero one if there is none.
func readManifest(disk vfs.FS, name string) (m Manifest, err error) {
	b, err := vfs.ReadFile(disk, name, 1<<24)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	head, body, _ := strings.Cut(string(b), "\n")
	switch {
	case strings.HasPrefix(head, magic+" "):
	case strings.HasPrefix(head, family):
		return m, fmt.Errorf("%s begins with %q, this version of kumo reads %q: %w", name, head, magic, run.ErrVersion)
	default:
		return m, fmt.Errorf("%s does not begin with %q: %w", name, magic, run.ErrVersion)
	}
	if head != heading(body) || json.Unmarshal([]byte(body), &m) != nil {
		return m, fmt.Errorf("%s: %w", name, run.ErrDamaged)
	}
	return m, nil
}

func heading(body string) string {
	return fmt.Sprintf("%s %08x", magic, crc32.Checksum([]byte(body), castagnoli))
}

func writeManifest(disk vfs.FS, name string, m Manifest) error {
	body, err := json.Marshal(m)
	if err == nil {
		err = vfs.Replace(disk, name, []byte(heading(string(body))+"\n"+string(body)))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
