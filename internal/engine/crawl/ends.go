package crawl

import (
	"maps"
	"slices"
	"sync"
)

// ends is what is known of how visits end, or earlier ones ended, where the frontier does not know it yet.
type visitEnds struct {
	mu        sync.Mutex      // guards what follows
	finalized map[string]bool // URLs whose end is journalled, and whose visit is not given back yet
	reported  map[string]bool // URLs of which an earlier run has said that their host could not be had
}

func newEnds(reported map[string]bool) *visitEnds {
	return &visitEnds{finalized: map[string]bool{}, reported: reported}
}

// add notes that a URL's end is journalled. Until the visit is given back a checkpoint has it among those under way.
func (s *visitEnds) add(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finalized[url] = true
}

// has reports whether a URL's end is journalled, and its visit not given back.
func (s *visitEnds) has(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finalized[url]
}

// returnSlot says that a visit is given back.
func (s *visitEnds) clear(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.finalized, url)
	delete(s.reported, url) // if it waits again, it says so itself
}

// wasReported reports whether an earlier run has said of a URL that its host could not be had.
func (s *visitEnds) wasReported(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported[url]
}

// takeReported is wasReported for a URL that leaves the frontier, or keeps it in mind itself.
func (s *visitEnds) takeReported(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.reported[url]
	delete(s.reported, url)
	return was
}

// dropReported forgets what was reported of the URLs that match.
func (s *visitEnds) dropReported(match func(url string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for url := range s.reported {
		if match(url) {
			delete(s.reported, url)
		}
	}
}

// total is what a checkpoint notes: the finalised URLs and the reported ones.
func (s *visitEnds) all() (finalised, reported []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.finalized)), slices.Collect(maps.Keys(s.reported))
}
