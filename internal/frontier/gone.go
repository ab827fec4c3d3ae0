package frontier

import "crypto/sha256"

// A goneKey stands for a URL.
type goneKey [16]byte

func goneKeyOf(url string) goneKey {
	sum := sha256.Sum256([]byte(url))
	return goneKey(sum[:16])
}

// Gone says of a URL that waits that it is done or was left out, as far as a journal knows that is ahead of the checkpoint. It is
// not handed out: the next item of that URL that comes up is dropped.
func (f *Frontier) Gone(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[goneKeyOf(url)]++
	f.going++
}

// willGo says of a URL that it will not be handed out.
func (f *Frontier) willGo(url string) bool { return len(f.gone) > 0 && f.gone[goneKeyOf(url)] > 0 }

// entryGone is willGo for what waits at a host.
func (f *Frontier) entryGone(host string, e *entry) bool {
	if len(f.gone) == 0 {
		return false
	}
	it, err := f.dec.item(host, e)
	return err == nil && f.willGo(it.URL)
}

// isGone says it once for each time that Gone was called.
func (f *Frontier) isGone(url string) bool {
	if len(f.gone) == 0 {
		return false
	}
	k := goneKeyOf(url)
	n := f.gone[k]
	if n > 0 {
		f.going--
	}
	if n == 1 {
		delete(f.gone, k)
	} else if n > 1 {
		f.gone[k] = n - 1
	}
	return n > 0
}
