package crawl

import (
	"slices"
	"strings"

	"kumo/internal/frontier"
	"kumo/internal/journal"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/store"
)

// A State is a crawl as its journal has it. The engine goes on from it.
type State struct {
	Marks []store.Mark // lengths of the record files
	Stats *stats.Counter

	seen    *seen.Set
	waiting map[string]waiting
	asides  map[string]page.Skip
	digests map[page.Digest]page.Ref
	roots   []frontier.Item // seeds, and where they redirect to
	marks   map[string]int64
}

type waiting struct {
	host string
	item frontier.Item
}

// Recover reads a journal back.
func Recover(j journal.Journal) (*State, error) {
	s := &State{
		Stats:   stats.New(),
		seen:    seen.New(),
		waiting: map[string]waiting{},
		asides:  map[string]page.Skip{},
		digests: map[page.Digest]page.Ref{},
		marks:   map[string]int64{},
	}
	if err := j.Replay(0, func(batch []byte, _ journal.Position) error { return read(batch, s) }); err != nil {
		return nil, err
	}
	for name, length := range s.marks {
		s.Marks = append(s.Marks, store.Mark{Name: name, Length: length})
	}
	return s, nil
}

// Waiting is the number of URLs that wait.
func (s *State) Waiting() int { return len(s.waiting) }

// Known is the number of URLs ever met within reach.
func (s *State) Known() int { return s.seen.Len() }

// Fresh reports whether the crawl has not begun.
func (s *State) Fresh() bool { return len(s.roots) == 0 }

// Seeds are the seeds that the crawl was given so far.
func (s *State) Seeds() []string {
	var urls []string
	for _, it := range s.roots {
		if it.Kind == page.Seed {
			urls = append(urls, it.URL)
		}
	}
	return urls
}

func (s *State) found(host string, it frontier.Item) {
	s.know(it.URL, it.Depth, seen.Known)
	s.waiting[it.URL] = waiting{host, it}
	if it.Root {
		s.roots = append(s.roots, it)
	}
}

func (s *State) know(url string, depth int32, state seen.State) {
	s.seen.Offer([]seen.URL{{URL: url, Depth: depth, State: state}}, nil)
}

func (s *State) done(v done) {
	delete(s.waiting, v.url)
	s.Stats.Visited(v.visit)
	if v.ref.ID != "" {
		s.digests[v.digest] = v.ref
	}
}

func (s *State) skip(k page.Skip) {
	s.know(k.URL, int32(k.Depth), seen.Known)
	delete(s.waiting, k.URL)
	s.Stats.Skipped(k.Rule)
}

// told keeps a URL waiting that was given up with its host.
func (s *State) told(url string) {
	if w, ok := s.waiting[url]; ok {
		w.item.Told = true
		s.waiting[url] = w
	}
}

// out does not touch what waits: another link may have brought the URL in at the same time.
func (s *State) out(k page.Skip) {
	s.know(k.URL, int32(k.Depth), seen.Aside)
	delete(s.asides, k.URL)
	s.Stats.Skipped(k.Rule)
}

func (s *State) gone(k page.Skip) {
	delete(s.waiting, k.URL)
	s.out(k)
}

func (s *State) nearer(url string, depth int32) { s.know(url, depth, seen.Known) }

func (s *State) sums(n stats.Sums) { s.Stats.Restore(n) }

func (s *State) aside(k page.Skip) {
	s.know(k.URL, int32(k.Depth), seen.Aside)
	s.asides[k.URL] = k
}

func (s *State) mark(m store.Mark)        { s.marks[m.Name] = m.Length }
func (s *State) off(host string, n int64) { s.Stats.OffHost(host, n) }

// queue is what waits, in an order that does not depend on chance.
func (s *State) queue() []waiting {
	all := make([]waiting, 0, len(s.waiting))
	for _, w := range s.waiting {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b waiting) int {
		if a.item.Depth != b.item.Depth {
			return int(a.item.Depth - b.item.Depth)
		}
		return strings.Compare(a.item.URL, b.item.URL)
	})
	return all
}
