package recovery

import (
	"maps"

	"kumo/internal/base/item"
	"kumo/internal/state/frontier"
	"kumo/internal/state/statefile"
)

// Abandoned is what counts of the abandoned queue's file.
type abandoned struct {
	file *statefile.Abandoned
	n    int // URLs
	// URLs that left it, or else the frontier's checkpoint, until settle; nil where nothing is on it
	left     map[string]int
	off      map[string]bool // URLs of the file that left
	offHosts map[string]bool // that were forgotten
}

// forget has what the file has of some hosts count no longer.
func (a *abandoned) forget(hosts map[string]bool) {
	if a.left == nil {
		return
	}
	maps.DeleteFunc(a.left, func(url string, _ int) bool { return hosts[a.file.Slices.Of(url)] })
	if a.offHosts == nil {
		a.offHosts = map[string]bool{}
	}
	maps.Copy(a.offHosts, hosts)
}

// settle finds out which URLs left the abandoned queue. The others left the frontier's checkpoint.
func (a *abandoned) settle(f *frontier.Frontier) error {
	if a.left == nil {
		return nil
	}
	a.off = map[string]bool{}
	err := a.file.Each(func(it item.Item) error {
		if a.offHosts[a.file.Slices.Of(it.URL)] {
			return nil
		}
		switch a.left[it.URL] {
		case 0:
			a.n++
			return nil
		case 1:
			delete(a.left, it.URL)
		default:
			a.left[it.URL]--
		}
		a.off[it.URL] = true
		return nil
	})
	for url, n := range a.left {
		for range n {
			f.Suppress(url)
		}
	}
	a.left = nil
	return err
}

func (a *abandoned) each(f func(it item.Item) error) error {
	if a.n == 0 {
		return nil
	}
	return a.file.Each(func(it item.Item) error {
		if a.off[it.URL] || a.offHosts[a.file.Slices.Of(it.URL)] {
			return nil
		}
		return f(it)
	})
}
