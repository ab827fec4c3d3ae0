package away

import (
	"fmt"
	"strconv"
	"strings"
)

// PartsDir is the folder in a location with the growth of lists, such as pages.jsonl, since a run uploaded them whole.
// Each part begins where the previous one ends. The lists thus cover the uploaded record files, and no byte is uploaded
// twice.
const PartsDir = "lists"

// PartName returns the name of the part of a list that begins at an offset.
func PartName(list string, offset int64) string {
	return fmt.Sprintf("%s/%s/%016x", PartsDir, list, offset)
}

// ParsePartName returns the list and the offset of a part, by its name.
func ParsePartName(name string) (list string, offset int64, is bool) {
	rest, is := strings.CutPrefix(name, PartsDir+"/")
	list, digits, both := strings.Cut(rest, "/")
	if !is || !both || len(digits) != 16 {
		return "", 0, false
	}
	offset, err := strconv.ParseInt(digits, 16, 64)
	return list, offset, err == nil
}

// IsPart reports whether a file is a part of a list.
func IsPart(name string) bool {
	_, _, is := ParsePartName(name)
	return is
}

// Parts returns the entries that make up a file, in order: the file as a run uploaded it whole, and its parts since. It
// returns none if the location has nothing of the file.
func (m *Manifest) Parts(name string) (parts []Entry) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	size := int64(0)
	if e, is := m.entries[name]; is {
		parts, size = append(parts, e), e.Size
	}
	if strings.Contains(name, "/") {
		return parts
	}
	for {
		e, is := m.entries[PartName(name, size)]
		if !is || e.Size == 0 || size+e.Size < size { // prevents an endless loop
			return parts
		}
		parts, size = append(parts, e), size+e.Size
	}
}

// HasParts reports whether the location has parts of lists that no run has uploaded whole since.
func (m *Manifest) HasParts() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.partial) > 0
}

// Length returns how many bytes of a file the location has.
func (m *Manifest) Length(name string) (n int64) {
	for _, e := range m.Parts(name) {
		n += e.Size
	}
	return n
}
