package away

import (
	"fmt"
	"strconv"
	"strings"
)

// PartsDir is the folder in a place that has what lists of a crawl have grown by, such as pages.jsonl, since a run has
// brought them whole: in parts, each of which begins where the one before it ends. So they are there as far as record
// files are, and nothing of them is written twice.
const PartsDir = "lists"

// PartName is that of the part of a list which begins at an offset.
func PartName(list string, offset int64) string {
	return fmt.Sprintf("%s/%s/%016x", PartsDir, list, offset)
}

// ParsePartName says of which list a file is a part.
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

// Parts are what a file is made of in the place, in their order: the whole, as a run has brought it, and the parts by
// which it has grown since. There are none if the place has nothing of it.
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
		if !is || e.Size == 0 || size+e.Size < size { // or there would be no end
			return parts
		}
		parts, size = append(parts, e), size+e.Size
	}
}

// HasParts reports whether lists are there in parts, as no run has brought them whole since.
func (m *Manifest) HasParts() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.partial) > 0
}

// Length is how much the place has of a file.
func (m *Manifest) Length(name string) (n int64) {
	for _, e := range m.Parts(name) {
		n += e.Size
	}
	return n
}
