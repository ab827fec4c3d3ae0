package balance

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/leader"
)

// samples are those that the log keeps: the last so many.
type samples struct {
	ring  [maxSamples]numberedSample // by number modulo maxSamples
	next  uint64                     // number, from 1
	added func(model.Sample)         // is told of each that comes by Apply
}

// A numbered is a sample; number 0: none.
type numberedSample struct {
	number uint64
	model.Sample
}

// maxSamples is how many samples the log keeps, in so many parts.
const (
	maxSamples  = 2048
	sampleParts = 64
)

var _ leader.State = (*samples)(nil)

var errSamples = errors.New("samples in the leader's log that cannot be read")

// Parts, AppendPart, LoadPart and Apply are for the log.
func (s *samples) Parts() int { return sampleParts }

// part is where a part's samples lie.
func (s *samples) part(n int) []numberedSample {
	const each = maxSamples / sampleParts
	return s.ring[n*each : (n+1)*each]
}

// AppendPart appends a part.
func (s *samples) AppendPart(b []byte, part int) []byte {
	w := varint.Writer(b)
	for _, k := range s.part(part) {
		if k.number > 0 {
			k.append(&w)
		}
	}
	return w
}

// LoadPart replaces a part.
func (s *samples) LoadPart(part int, b []byte) error {
	clear(s.part(part))
	return readSamples(b, s.put)
}

// Apply adds samples.
func (s *samples) Apply(change []byte) error {
	return readSamples(change, func(k numberedSample) {
		if s.put(k); s.added != nil {
			s.added(k.Sample)
		}
	})
}

func (s *samples) put(k numberedSample) {
	s.ring[k.number%maxSamples] = k
	s.next = max(s.next, k.number+1)
}

// all are the samples in the order in which they came.
func (s *samples) all() (all []model.Sample) {
	kept := slices.DeleteFunc(slices.Clone(s.ring[:]), func(k numberedSample) bool { return k.number == 0 })
	slices.SortFunc(kept, func(a, b numberedSample) int { return cmp.Compare(a.number, b.number) })
	for _, k := range kept {
		all = append(all, k.Sample)
	}
	return all
}

func (k *numberedSample) append(w *varint.Writer) {
	w.Uint(k.number)
	w.String(k.Node)
	w.Uint(uint64(k.URLs))
	for _, f := range []float64{k.Seconds, k.Cores, k.GHz, k.MemoryGB, k.NetworkMbps, k.DiskMbps} {
		w.Uint(math.Float64bits(f))
	}
}

func readSamples(b []byte, f func(numberedSample)) error {
	r := varint.Reader{Rest: b}
	for len(r.Rest) > 0 && !r.Bad {
		k := numberedSample{number: r.Uint(), Sample: model.Sample{Node: r.String(), URLs: int(min(r.Uint(), 1<<50))}}
		for _, f := range []*float64{&k.Seconds, &k.Cores, &k.GHz, &k.MemoryGB, &k.NetworkMbps, &k.DiskMbps} {
			*f = math.Float64frombits(r.Uint())
		}
		if r.Bad || k.number == 0 || k.number > 1<<62 || k.Check() != nil {
			return errSamples
		}
		f(k)
	}
	if r.Bad {
		return errSamples
	}
	return nil
}
