package frontier

import "crypto/sha256"

// A urlHash identifies a URL.
type urlHash [16]byte

func hashURL(url string) urlHash {
	sum := sha256.Sum256([]byte(url))
	return urlHash(sum[:16])
}

// urlCounts counts occurrences of URLs.
type urlCounts map[urlHash]int

// drop removes one occurrence of a URL, and reports whether there was one.
func (c urlCounts) drop(k urlHash) bool {
	n := c[k]
	if n == 1 {
		delete(c, k)
	} else if n > 1 {
		c[k] = n - 1
	}
	return n > 0
}

// A suppression contains the pending URLs that must not be handed out: the next item of such a URL is dropped. For a
// view of an iterator, the URLs that were suppressed when the view was opened stay suppressed, because its copy of the
// queue may still contain their items. The frontier's lock guards it.
type suppression struct {
	counts urlCounts
	total  int                  // the sum of counts
	views  int                  // number of open views
	epoch  uint64               // number of suppressions that ended while views were open
	ended  map[urlHash][]uint64 // the epochs in which they ended
}

func newSuppression() *suppression { return &suppression{counts: urlCounts{}} }

// add suppresses one item of a URL.
func (s *suppression) add(k urlHash) {
	s.counts[k]++
	s.total++
}

func (s *suppression) isEmpty() bool { return len(s.counts) == 0 }

// has reports whether an item of the URL will be dropped.
func (s *suppression) has(url string) bool {
	return len(s.counts) > 0 && s.counts[hashURL(url)] > 0
}

// hasEntry is like has for an entry of a host's queue.
func (s *suppression) hasEntry(host string, e *entry) bool {
	if len(s.counts) == 0 {
		return false
	}
	it, err := e.item(host)
	return err == nil && s.has(it.URL)
}

// consume reports whether an item of the URL must be dropped. It returns true once for each call of add.
func (s *suppression) consume(url string) bool {
	if len(s.counts) == 0 {
		return false
	}
	k := hashURL(url)
	dropped := s.counts.drop(k)
	if dropped {
		s.end(k, 1)
	}
	return dropped
}

// clear ends all suppressions of a URL.
func (s *suppression) clear(url string) {
	if len(s.counts) == 0 {
		return
	}
	k := hashURL(url)
	s.end(k, s.counts[k])
	delete(s.counts, k)
}

// end records for open views that a URL's suppression has ended the given number of times.
func (s *suppression) end(k urlHash, times int) {
	s.total -= times
	if s.views == 0 {
		return
	}
	if s.ended == nil {
		s.ended = map[urlHash][]uint64{}
	}
	for range times {
		s.epoch++
		s.ended[k] = append(s.ended[k], s.epoch)
	}
}

func (s *suppression) openView() { s.views++ }

func (s *suppression) closeView() {
	if s.views--; s.views == 0 {
		s.ended = nil
	}
}

// A suppressedView is the suppression as of an epoch. It drops as many items of a URL as were suppressed then.
type suppressedView struct {
	*suppression
	since   uint64
	dropped urlCounts
}

// view returns a view of the current suppression.
func (s *suppression) view() suppressedView { return suppressedView{suppression: s, since: s.epoch} }

// drops reports whether the view's next item of the URL was suppressed. Another item of the same URL may not have been.
func (v *suppressedView) drops(url string) bool {
	if len(v.counts) == 0 && len(v.ended) == 0 {
		return false
	}
	k := hashURL(url)
	n := v.counts[k]
	for _, at := range v.ended[k] {
		if at > v.since {
			n++
		}
	}
	if v.dropped[k] >= n {
		return false
	}
	if v.dropped == nil {
		v.dropped = urlCounts{}
	}
	v.dropped[k]++
	return true
}
