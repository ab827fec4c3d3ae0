package seen

import (
	"strings"
	"sync"
)

// A State is what a known URL is.
type State uint8

// The states. A set-aside URL was left out for a reason that speaks of the link and not of the URL (too deep, only
// embedded): a better link may still bring it in.
const (
	Unknown State = iota
	Deferred
	Known
)

// A URL is offered with the state it would have.
type URL struct {
	URL   string // canonical
	Depth int32
	State State // Known or Aside

	Payload []byte // comes back if a later merge finds that the URL is news; a [Set] ignores it
}

// News is what an offer brought.
type News uint8

// The news.
const (
	Nothing   News = iota
	Nearer         // known, but met at less depth than before
	Fresh          // not known before, or only set aside
	Undecided      // perhaps known: the next merge decides; a [Set] always knows
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

// A Set is a set of URLs in memory. Its methods may be called by many goroutines at once.
type Set struct {
	mu sync.Mutex
	m  map[string]entry
}

// New returns an empty set.
func New() *Set { return &Set{m: make(map[string]entry)} }

// Offer enters urls and appends to news what each was. For those that are Fresh it replaces urls[i].URL with a copy
// that the caller may keep. A known URL met again at less depth takes that depth.
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

// Get returns what a URL is, and the least depth at which it was met as that.
func (s *Set) Get(url string) (state State, depth int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.m[url]
	return e.state, e.depth
}

// Len is the number of URLs in the set.
func (s *Set) Len() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.m))
}

// InsertKnown enters URLs whose news was told before.
func (s *Set) InsertKnown(urls []URL) { s.Offer(urls, nil) }

// States returns the state of each URL.
func (s *Set) States(urls []string) ([]State, error) {
	states := make([]State, len(urls))
	for i, url := range urls {
		states[i], _ = s.Get(url)
	}
	return states, nil
}

// StateOf is Get for those who may have a [DB] in its place.
func (s *Set) StateOf(url string) (State, int32, error) {
	state, depth := s.Get(url)
	return state, depth, nil
}
