package crawl

import (
	"kumo/internal/base/weburl"
	"kumo/internal/state/seen"
)

// Knows reports whether a URL was met before within reach, as the crawl's rules write it. Of a host that is another
// node's it says nothing.
func (i *Inspector) Knows(u weburl.URL) (mine, known bool, err error) {
	u = i.cfg.Canon.Apply(u)
	if i.hosts.router != nil && !i.hosts.router.Ours(i.hosts.slices.At(u.Host(), u.String())) {
		return false, false, nil
	}
	state, _, err := i.known.seen.Look(u.String())
	return true, state == seen.Known, err
}
