package seen

import (
	"strings"
	"sync"
)

// A State is the state of a known URL.
type State uint8

// The states. A deferred URL was filtered for a reason that depends on the link (too deep, only embedded): a better
// link may still make it known.
const (
	Unknown State = iota
	Deferred
	Known
)

// A URL is an offer of a URL with the state that it would have.
type URL struct {
	URL   string // canonical
	Depth int32
	State State // Known or Deferred

	Payload []byte // delivered with the URL if a later merge finds it to be new; a [Set] ignores it
}

// News is the result of an offer.
type News uint8

// The results of an offer.
const (
	Nothing   News = iota
	Nearer         // known, but met at less depth than before
	Fresh          // new, or only deferred before
	Undecided      // possibly known: a later merge decides; never returned by a [Set]
)

type entry struct {
	state State
	depth int32
}

func (e entry) judge(state State, depth int32) News {
	switch {
	case e.state < state:
		return Fresh
	case e.state == state && depth < e.depth:
		return Nearer
	}
	return Nothing
}

// A Set is a set of URLs in memory. It is safe for concurrent use.
type Set struct {
	mu sync.Mutex
	m  map[string]entry
}

// New returns an empty set.
func New() *Set { return &Set{m: make(map[string]entry)} }

// Offer adds urls, and appends to news what each was. For those that are Fresh, it replaces urls[i].URL with a copy
// that the caller may retain. A known URL met at less depth gets that depth.
func (s *Set) Offer(urls []URL, news []News) []News {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range urls {
		news = append(news, s.offer(&urls[i]))
	}
	return news
}

func (s *Set) offer(u *URL) News {
	old := s.m[u.URL]
	news := old.judge(u.State, u.Depth)
	if news == Fresh {
		u.URL = strings.Clone(u.URL)
	}
	if news != Nothing {
		s.m[u.URL] = entry{u.State, u.Depth}
	}
	return news
}

// Get returns the state of a URL, and the least depth at which it was met in that state.
func (s *Set) Get(url string) (state State, depth int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.m[url]
	return e.state, e.depth
}

// Len returns the number of URLs in the set.
func (s *Set) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.m))
}

// InsertKnown adds URLs whose news was delivered before.
func (s *Set) InsertKnown(urls []URL) { s.Offer(urls, nil) }

// States returns the state of each URL.
func (s *Set) States(urls []string) ([]State, error) {
	states := make([]State, len(urls))
	for i, url := range urls {
		states[i], _ = s.Get(url)
	}
	return states, nil
}

// StateOf is Get, with the signature of a [DB]'s method.
func (s *Set) StateOf(url string) (State, int32, error) {
	state, depth := s.Get(url)
	return state, depth, nil
}
