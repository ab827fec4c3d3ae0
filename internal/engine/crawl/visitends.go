package crawl

import (
	"maps"
	"slices"
	"sync"
)

// visitEnds tracks the ends of visits that the frontier does not have yet, and failures that earlier runs have
// reported.
type visitEnds struct {
	mu        sync.Mutex      // guards the fields below
	finalized map[string]bool // URLs whose end is in the journal, with the visit not given back yet
	reported  map[string]bool // URLs that an earlier run has reported as failed with their host
}

func newEnds(reported map[string]bool) *visitEnds {
	return &visitEnds{finalized: map[string]bool{}, reported: reported}
}

// add adds a URL whose end is in the journal. Until the visit is given back, checkpoints have it as under way.
func (s *visitEnds) add(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finalized[url] = true
}

// has reports whether a URL's end is in the journal and its visit not given back.
func (s *visitEnds) has(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finalized[url]
}

// clear removes a URL whose visit was given back.
func (s *visitEnds) clear(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.finalized, url)
	delete(s.reported, url) // if it is pending again, its item has this flag
}

// wasReported reports whether an earlier run has reported the URL as failed with its host.
func (s *visitEnds) wasReported(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported[url]
}

// removeReported is wasReported for a URL that leaves the frontier or has the flag itself from now on.
func (s *visitEnds) removeReported(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.reported[url]
	delete(s.reported, url)
	return was
}

// dropReported removes the reported URLs that match.
func (s *visitEnds) dropReported(match func(url string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for url := range s.reported {
		if match(url) {
			delete(s.reported, url)
		}
	}
}

// all returns the finalized and the reported URLs, for a checkpoint.
func (s *visitEnds) all() (finalized, reported []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.finalized)), slices.Collect(maps.Keys(s.reported))
}
