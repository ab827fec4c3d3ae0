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

// samples are the last maxSamples samples, as stored in the log.
type samples struct {
	ring  [maxSamples]numberedSample // by number modulo maxSamples
	next  uint64                     // next number; numbers start at 1
	added func(model.Sample)         // called for each sample that Apply adds
}

// A numberedSample is a sample with its number; 0: none.
type numberedSample struct {
	number uint64
	model.Sample
}

// maxSamples is the number of samples that the log stores, in sampleParts parts.
const (
	maxSamples  = 2048
	sampleParts = 64
)

var _ leader.State = (*samples)(nil)

var errSamples = errors.New("leader's log: damaged samples")

// Parts returns the number of parts, for the log.
func (s *samples) Parts() int { return sampleParts }

// part returns the samples of a part.
func (s *samples) part(n int) []numberedSample {
	const each = maxSamples / sampleParts
	return s.ring[n*each : (n+1)*each]
}

// AppendPart appends the encoding of a part.
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

// all returns the samples, the oldest first.
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
