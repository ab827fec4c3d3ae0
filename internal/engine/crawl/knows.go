package crawl

import (
	"kumo/internal/base/weburl"
	"kumo/internal/state/seen"
)

// Knows reports whether a URL was met before within reach, as the crawl's rules write it. Of a host that is another
// node's it says nothing.
func (e *Engine) Knows(u weburl.URL) (mine, known bool, err error) {
	u = e.cfg.Canon.Apply(u)
	if e.peers.router != nil && !e.peers.router.Ours(e.slices.At(u.Host(), u.String())) {
		return false, false, nil
	}
	state, _, err := e.known.seen.Look(u.String())
	return true, state == seen.Known, err
}
