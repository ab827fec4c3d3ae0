package recovery

import (
	"maps"

	"kumo/internal/base/item"
	"kumo/internal/state/frontier"
	"kumo/internal/state/statefile"
)

// An abandoned contains the current content of the abandoned queue's file.
type abandoned struct {
	file *statefile.AbandonedQueue
	n    int // number of URLs
	// URLs removed from the queue or from the frontier's checkpoint, until resolve decides which; nil if the queue is
	// empty
	removals     map[string]int
	removedURLs  map[string]bool // URLs of the file that were removed
	removedHosts map[string]bool // hosts that were forgotten
}

// forget removes all URLs of some hosts.
func (a *abandoned) forget(hosts map[string]bool) {
	if a.removals == nil {
		return
	}
	maps.DeleteFunc(a.removals, func(url string, _ int) bool { return hosts[a.file.Slices.Of(url)] })
	if a.removedHosts == nil {
		a.removedHosts = map[string]bool{}
	}
	maps.Copy(a.removedHosts, hosts)
}

// resolve determines which removed URLs were in the abandoned queue. The others were in the frontier's checkpoint.
func (a *abandoned) resolve(f *frontier.Frontier) error {
	if a.removals == nil {
		return nil
	}
	a.removedURLs = map[string]bool{}
	err := a.file.EachEarlier(func(it item.Item) error {
		if a.removedHosts[a.file.Slices.Of(it.URL)] {
			return nil
		}
		switch a.removals[it.URL] {
		case 0:
			a.n++
			return nil
		case 1:
			delete(a.removals, it.URL)
		default:
			a.removals[it.URL]--
		}
		a.removedURLs[it.URL] = true
		return nil
	})
	for url, n := range a.removals {
		for range n {
			f.Suppress(url)
		}
	}
	a.removals = nil
	return err
}

func (a *abandoned) each(f func(it item.Item) error) error {
	if a.n == 0 {
		return nil
	}
	return a.file.EachEarlier(func(it item.Item) error {
		if a.removedURLs[it.URL] || a.removedHosts[a.file.Slices.Of(it.URL)] {
			return nil
		}
		return f(it)
	})
}
