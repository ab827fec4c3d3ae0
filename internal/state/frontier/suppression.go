package frontier

import "crypto/sha256"

// A urlHash stands for a URL.
type urlHash [16]byte

func hashURL(url string) urlHash {
	sum := sha256.Sum256([]byte(url))
	return urlHash(sum[:16])
}

// urlCounts are URLs, and how often each.
type urlCounts map[urlHash]int

// drop takes a URL out once, and reports whether it was there.
func (c urlCounts) drop(k urlHash) bool {
	n := c[k]
	if n == 1 {
		delete(c, k)
	} else if n > 1 {
		c[k] = n - 1
	}
	return n > 0
}

// A suppression knows which pending URLs are not to be handed out: the next item of such a URL is dropped. A view, of
// an iterator, sees a URL as suppressed that was so when the view was opened, because it may still have the item in its
// copy of the queue. The frontier's lock guards it.
type suppression struct {
	counts urlCounts
	total  int                  // the sum of counts
	views  int                  // open
	epoch  uint64               // counts the suppressions that ended while views were open
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

// hasEntry is has for an entry of a host's queue.
func (s *suppression) hasEntry(host string, e *entry) bool {
	if len(s.counts) == 0 {
		return false
	}
	it, err := e.item(host)
	return err == nil && s.has(it.URL)
}

// consume reports whether an item of the URL is to be dropped: true once for each call of add.
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

// end counts that so many suppressions of a URL have ended, for open views.
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

// A suppressedView is the suppression as it was in an epoch. It drops as many items of a URL as were suppressed then.
type suppressedView struct {
	*suppression
	since   uint64
	dropped urlCounts
}

// view returns the suppression as it is now.
func (s *suppression) view() suppressedView { return suppressedView{suppression: s, since: s.epoch} }

// drops reports whether the view's next item of the URL was suppressed. There may be another of its URL that was not.
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
