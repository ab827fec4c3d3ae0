package frontier

import (
	"slices"
	"strings"

	"kumo/internal/base/item"
)

// Nothing waits here that nobody can fetch: an item's URL is http or https and its host the one in whose queue it
// waits. What is not so is refused wherever it comes from (who pushes it, an earlier process, another node, a file),
// and counted.

// Belongs reports whether a URL may wait at a host, or at a slice of it. In which of them it does is not looked at: its
// host's robots.txt may wait in any.
func Belongs(host, url string) bool {
	host = item.HostOfSlice(host)
	rest, ok := strings.CutPrefix(url, "http")
	if !ok || host == "" {
		return false
	}
	rest, ok = strings.CutPrefix(strings.TrimPrefix(rest, "s"), "://")
	return ok && len(rest) > len(host) && rest[len(host)] == '/' && rest[:len(host)] == host
}

// fitting are those of some items that may wait at a host; the others are counted.
func (f *Frontier) fitting(host string, items []Item) []Item {
	strange := func(it Item) bool { return !Belongs(host, it.URL) }
	first := slices.IndexFunc(items, strange)
	if first < 0 {
		return items
	}
	all := slices.DeleteFunc(slices.Clone(items), strange)
	f.refused += len(items) - len(all)
	return all
}

// Refused is how many items were not taken, or not handed out, because their URLs are none that can be fetched at the
// host they came with.
func (f *Frontier) Refused() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}
