package traps

import (
	"strings"

	"kumo/internal/base/weburl"
)

// A site may contain whole copies of itself: partial translations, versions, mirrors. Their pages are often linked only
// from one another. An area is a directory of a domain that was entered from outside: by a seed, or by a link on a page
// of another pattern that is not vain. Each area may have one copy of each page. The number of such copies is finite: a
// generator repeats its texts within the area through which it was entered.

const (
	maxAreas      = 64      // per domain
	maxAreaCopies = 1 << 16 // per domain
	copiesPerNode = 8       // copies that need as much memory as a node of a tree
)

type areas struct {
	numbers map[string]int32    // numbers from 1, by host and directory
	copies  map[uint64]struct{} // hashes of an area and the page that was copied
}

// memory returns the memory of the areas, in tree nodes.
func (a *areas) memory() int { return len(a.numbers) + len(a.copies)/copiesPerNode }

// directoryOf returns the host and the directory of a URL, with the final slash.
func directoryOf(u weburl.URL) string {
	at := strings.Index(u.String(), "://") + len("://")
	end := at + len(u.Host()) + len(u.Path())
	return u.String()[at : at+strings.LastIndexByte(u.String()[at:end], '/')+1]
}

// number returns the innermost area that contains a directory, or 0.
func (a *areas) number(directory string) int32 {
	for directory != "" && len(a.numbers) > 0 {
		if n := a.numbers[directory]; n > 0 {
			return n
		}
		directory = directory[:strings.LastIndexByte(directory[:len(directory)-1], '/')+1]
	}
	return 0
}

func (a *areas) add(directory string) {
	if a.numbers == nil {
		a.numbers = map[string]int32{}
	}
	a.numbers[strings.Clone(directory)] = int32(len(a.numbers)) + 1
}

// AddArea makes the directory of u an area if it was entered from outside. page is the URL of the page that links to u,
// "" for a seed. The caller ensures that this page is not vain.
func (d *Detector) AddArea(u weburl.URL, page string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom, directory := d.domain(u), directoryOf(u)
	if directory == "" || len(dom.areas.numbers) >= maxAreas || dom.areas.numbers[directory] > 0 {
		return
	}
	from, err := weburl.Parse(page)
	if err == nil && from.Host() != "" && d.domain(from) == dom && d.endNode(from, dom) == d.endNode(u, dom) {
		return
	}
	dom.areas.add(directory)
	d.size++
}

// FirstCopy reports whether u is the first copy of another page in its area, and the other page is outside of the area.
func (d *Detector) FirstCopy(u, of weburl.URL) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	dom := d.domain(u)
	area := dom.areas.number(directoryOf(u))
	if area == 0 || d.domain(of) == dom && dom.areas.number(directoryOf(of)) == area {
		return false
	}
	key := uint64(area) * 0x9e3779b97f4a7c15
	for _, c := range []byte(of.String()) {
		key = (key ^ uint64(c)) * 1099511628211
	}
	if _, had := dom.areas.copies[key]; had || len(dom.areas.copies) >= maxAreaCopies {
		return false
	}
	if dom.areas.copies == nil {
		dom.areas.copies = map[uint64]struct{}{}
	}
	before := dom.areas.memory()
	dom.areas.copies[key] = struct{}{}
	d.size += dom.areas.memory() - before
	return true
}
