package frontier

import (
	"slices"
	"strings"

	"kumo/internal/base/item"
)

// Belongs reports whether a URL may be in the queue of a host or of a slice of it: it is http or https, and its host
// matches. It does not check the slice, as the host's robots.txt may be in any.
func Belongs(host, url string) bool {
	host = item.HostOfSlice(host)
	rest, ok := strings.CutPrefix(url, "http")
	if !ok || host == "" {
		return false
	}
	rest, ok = strings.CutPrefix(strings.TrimPrefix(rest, "s"), "://")
	return ok && len(rest) > len(host) && rest[len(host)] == '/' && rest[:len(host)] == host
}

// A filter rejects and counts items that cannot be fetched at their host, whatever their source: a caller of Push, an
// earlier process, another node, a file. The frontier's lock guards it.
type filter struct{ refused int }

// admits reports whether a URL may be in a host's queue.
func (f *filter) admits(host, url string) bool {
	if Belongs(host, url) {
		return true
	}
	f.refused++
	return false
}

// admitted returns the items that may be in a host's queue.
func (f *filter) admitted(host string, items []Item) []Item {
	unfit := func(it Item) bool { return !Belongs(host, it.URL) }
	first := slices.IndexFunc(items, unfit)
	if first < 0 {
		return items
	}
	all := slices.DeleteFunc(slices.Clone(items), unfit)
	f.refused += len(items) - len(all)
	return all
}
