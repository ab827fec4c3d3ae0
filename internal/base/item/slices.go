package item

import (
	"iter"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// MaxSlices is the maximum number of slices per host.
const MaxSlices = 4096

// Slices divides the URLs of each host into slices, by a hash of the URL. Queues, politeness and nodes treat a slice
// like a host. Its name is the host and its number, counted from 1: "example.com#3", which cannot be a host name. With
// one slice per host, the slice has the host's name; a nil Slices does this.
//
// Slices is safe for concurrent use. A URL is in the same slice in every process.
type Slices struct {
	n     uint64
	names [1 << 13]atomic.Pointer[sliceName] // recently used names, which saves an allocation for most links
}

type sliceName struct {
	name, host string
	number     uint64
}

// NewSlices returns a Slices with n slices per host, or nil if n is 1 or less.
func NewSlices(n int) *Slices {
	if n <= 1 {
		return nil
	}
	return &Slices{n: uint64(min(n, MaxSlices))}
}

// Count returns the number of slices per host.
func (s *Slices) Count() int {
	if s == nil {
		return 1
	}
	return int(s.n)
}

// Of returns the slice of a canonical http or https URL; "" for anything else.
func (s *Slices) Of(url string) string { return s.OfHost(HostOf(url), url) }

// OfHost is like Of, for a URL whose host is known.
func (s *Slices) OfHost(host, url string) string {
	if s == nil || host == "" {
		return host
	}
	return s.name(host, xxhash.Sum64String(url)%s.n)
}

// Number returns the number of a URL's slice, counted from 0.
func (s *Slices) Number(url []byte) int {
	if s == nil {
		return 0
	}
	return int(xxhash.Sum64(url) % s.n)
}

// Name returns the name of a host's slice; number is counted from 0.
func (s *Slices) Name(host string, number int) string {
	if s == nil {
		return host
	}
	return s.name(host, uint64(number))
}

// All yields the names of all slices of a host.
func (s *Slices) All(host string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range s.Count() {
			if !yield(s.Name(host, i)) {
				return
			}
		}
	}
}

func (s *Slices) name(host string, number uint64) string {
	at := &s.names[(xxhash.Sum64String(host)+number)%uint64(len(s.names))]
	if kept := at.Load(); kept != nil && kept.number == number && kept.host == host {
		return kept.name
	}
	var b strings.Builder
	b.Grow(len(host) + len("#4096"))
	b.WriteString(host)
	b.WriteByte('#')
	b.WriteString(strconv.FormatUint(number+1, 10))
	name := b.String()
	at.Store(&sliceName{name, name[:len(host)], number})
	return name
}

// HostOfSlice returns the host of a slice. The argument may also be a host, which is returned unchanged.
func HostOfSlice(slice string) string {
	i := len(slice) - 1
	for i > 0 && '0' <= slice[i] && slice[i] <= '9' {
		i--
	}
	if i > 0 && slice[i] == '#' {
		return slice[:i]
	}
	return slice
}
