package recovery

import (
	"crypto/sha256"
	"encoding/binary"

	"kumo/internal/base/item"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// Tenures is how often hosts were given away, by a hash of their names. What the URL database says of a URL that was
// taken in under an earlier tenure of its host, and was not done, holds no longer: it is new.
type Tenures map[uint64]int

// Of is how often a host was given away.
func (t Tenures) Of(host string) int {
	if len(t) == 0 {
		return 0
	}
	return t[hostKey(host)]
}

// End notes that a host is given away.
func (t Tenures) End(host string) { t[hostKey(host)]++ }

// hostKey is a host's key. Of two hosts with one key what waits would be fetched twice.
func hostKey(host string) uint64 {
	sum := sha256.Sum256([]byte(host))
	return binary.BigEndian.Uint64(sum[:])
}

// Dispatched is Found for a URL whose host had been given away before.
func (s *replay) Dispatched(tenure int, it item.Item) {
	if s.refuses(&it) {
		return
	}
	s.Due(it.URL, seen.Meta{Tenure: tenure})
	s.Found(it)
}

// Ended notes that a URL is done; an entry beside it takes it out of what waits.
func (s *replay) Ended(url string) { s.Due(url, seen.Meta{Ended: true}) }

// HostsReleased is told before HostsForgotten.
func (s *replay) HostsReleased(hosts []string) {
	if s.beforeCheckpoint {
		return
	}
	for _, host := range hosts {
		s.Tenures.End(host)
	}
}

var _ entry.Reader = (*replay)(nil)
