package recovery

import (
	"crypto/sha256"
	"encoding/binary"

	"kumo/internal/base/item"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// Tenures contains how often hosts were released, by a hash of their names. If a URL was admitted in an earlier tenure
// of its host and was not done, its state in the URL database is void: it is new.
type Tenures map[uint64]int

// Of returns how often a host was released.
func (t Tenures) Of(host string) int {
	if len(t) == 0 {
		return 0
	}
	return t[hostKey(host)]
}

// End records that a host is released.
func (t Tenures) End(host string) { t[hostKey(host)]++ }

// hostKey returns a host's key. If two hosts had the same key, their pending URLs would be fetched twice.
func hostKey(host string) uint64 {
	sum := sha256.Sum256([]byte(host))
	return binary.BigEndian.Uint64(sum[:])
}

// Dispatched is Found for a URL whose host was released before.
func (s *replay) Dispatched(tenure int, it item.Item) {
	if s.refuses(&it) {
		return
	}
	s.Due(it.URL, seen.Meta{Tenure: tenure})
	s.Found(it)
}

// Ended records that a URL is done. Another entry removes it from the pending URLs.
func (s *replay) Ended(url string) { s.Due(url, seen.Meta{Ended: true}) }

// HostsReleased comes before HostsForgotten.
func (s *replay) HostsReleased(hosts []string) {
	if s.beforeCheckpoint {
		return
	}
	for _, host := range hosts {
		s.Tenures.End(host)
	}
}

var _ entry.Reader = (*replay)(nil)
