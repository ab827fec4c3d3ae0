package batch

import "sync"

// maxPending limits the URLs of a task in memory.
const maxPending = 100_000

// A pending holds the InURLs of the URLs in the frontier: which collections request a URL, and in which role.
//
// Invariants: a URL has InURLs while the frontier has its item. add reports a URL as new once until claim removes it,
// so the frontier has one item for each URL.
type pending struct {
	mu      sync.Mutex // guards the fields below
	room    sync.Cond  // urls has decreased, or stopped is set
	urls    int
	stopped bool
	wishes  map[string][]InURL
}

func newPending() *pending {
	p := &pending{wishes: map[string][]InURL{}}
	p.room.L = &p.mu
	return p
}

// add adds InURLs of a URL, and reports whether it had none.
func (p *pending) add(url string, wishes []InURL) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, has := p.wishes[url]
	if !has {
		p.urls++
	}
	p.wishes[url] = append(p.wishes[url], wishes...)
	return !has
}

// claim removes and returns the InURLs of a URL.
func (p *pending) claim(url string) []InURL {
	p.mu.Lock()
	defer p.mu.Unlock()
	wishes := p.wishes[url]
	if wishes != nil {
		delete(p.wishes, url)
		p.urls--
		p.room.Signal()
	}
	return wishes
}

// waitForRoom waits while too many URLs are in memory. It returns false after stop.
func (p *pending) waitForRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.urls >= maxPending && !p.stopped {
		p.room.Wait()
	}
	return !p.stopped
}

func (p *pending) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.room.Broadcast()
}
