package frontier

import "crypto/sha256"

// A goneKey stands for a URL.
type goneKey [16]byte

// goneKeys are URLs, and how often each.
type goneKeys map[goneKey]int

// drop takes a URL out once, and reports whether it was there.
func (g goneKeys) drop(k goneKey) bool {
	n := g[k]
	if n == 1 {
		delete(g, k)
	} else if n > 1 {
		g[k] = n - 1
	}
	return n > 0
}

func goneKeyOf(url string) goneKey {
	sum := sha256.Sum256([]byte(url))
	return goneKey(sum[:16])
}

// Suppress says of a URL that waits that it is done or was left out, as far as a journal knows that is ahead of the
// checkpoint. It is not handed out: the next item of that URL that comes up is dropped.
func (f *Frontier) Suppress(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[goneKeyOf(url)]++
	f.going++
}

// mayBeSuppressed says of a URL that it will not be handed out.
func (f *Frontier) mayBeSuppressed(url string) bool {
	return len(f.gone) > 0 && f.gone[goneKeyOf(url)] > 0
}

// entrySuppressed is willGo for what waits at a host.
func (f *Frontier) entrySuppressed(host string, e *entry) bool {
	if len(f.gone) == 0 {
		return false
	}
	it, err := f.dec.item(host, e)
	return err == nil && f.mayBeSuppressed(it.URL)
}

// isSuppressed says it once for each time that Suppress was called.
func (f *Frontier) isSuppressed(url string) bool {
	if len(f.gone) == 0 {
		return false
	}
	k := goneKeyOf(url)
	is := f.gone.drop(k)
	if is {
		f.spend(k, 1)
	}
	return is
}

// spend notes that what Suppress said of a URL has ended so often: a tour may have that URL in a copy of its queue.
func (f *Frontier) spend(k goneKey, times int) {
	f.going -= times
	if f.tours == 0 {
		return
	}
	if f.spent == nil {
		f.spent = map[goneKey][]uint64{}
	}
	for range times {
		f.spends++
		f.spent[k] = append(f.spent[k], f.spends)
	}
}

// suppressedAt is how often a URL was suppressed when spends was since.
func (f *Frontier) suppressedAt(k goneKey, since uint64) int {
	n := f.gone[k]
	for _, at := range f.spent[k] {
		if at > since {
			n++
		}
	}
	return n
}
