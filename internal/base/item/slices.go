package item

import (
	"iter"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// MaxSlices is into how many slices a host is cut at the most.
const MaxSlices = 4096

// Slices cut each host's URLs into so many parts by a hash of the URL. A slice is to queues, to politeness and to nodes
// that share a crawl what otherwise a whole host is. It is named by its host and its number, counted from 1:
// "example.com#3", which no host can be named. Where there is one slice a host, it has the host's name: that is what
// nil does.
//
// Slices may be used by many goroutines at once. In all processes the same URL is in the same slice.
type Slices struct {
	n     uint64
	names [1 << 13]atomic.Pointer[sliceName] // that were asked for lately, so that most links need no new one
}

type sliceName struct {
	name, host string
	number     uint64
}

// NewSlices cuts hosts into n slices; nil for 1 or less.
func NewSlices(n int) *Slices {
	if n <= 1 {
		return nil
	}
	return &Slices{n: uint64(min(n, MaxSlices))}
}

// Count is into how many slices a host is cut.
func (s *Slices) Count() int {
	if s == nil {
		return 1
	}
	return int(s.n)
}

// Of is the slice of a canonical URL of the web; "" of anything else.
func (s *Slices) Of(url string) string { return s.OfHost(HostOf(url), url) }

// OfHost is Of for a URL whose host is known.
func (s *Slices) OfHost(host, url string) string {
	if s == nil || host == "" {
		return host
	}
	return s.name(host, xxhash.Sum64String(url)%s.n)
}

// Number is the slice's of a URL, counted from 0.
func (s *Slices) Number(url []byte) int {
	if s == nil {
		return 0
	}
	return int(xxhash.Sum64(url) % s.n)
}

// Name is the name of a host's slice, by its number counted from 0.
func (s *Slices) Name(host string, number int) string {
	if s == nil {
		return host
	}
	return s.name(host, uint64(number))
}

// All yields all slices of a host.
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

// HostOfSlice is the host that a slice is of; a host's is itself.
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
