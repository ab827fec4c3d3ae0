package balance

import (
	"fmt"
	"slices"
	"testing"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy/balance/model"
)

// TestTheLastSamplesAreKept reads samples from parts and from changes: the last 2,048, in order.
func TestTheLastSamplesAreKept(t *testing.T) {
	var one, byParts samples
	var want []model.Sample
	one.next = 1
	for i := range 5000 {
		s := model.Sample{Node: fmt.Sprint("n", i%7), Machine: model.Machine{Cores: 4, DiskMbps: 1.5}, URLs: 1 + i,
			Seconds: float64(i+1) / 3}
		want = append(want, s)
		if err := one.Apply(appendNumbered(nil, one.next, s)); err != nil {
			t.Fatal(err)
		}
	}
	want = want[len(want)-maxSamples:]
	if got := one.all(); !slices.Equal(got, want) {
		t.Errorf("%d samples, from %+v on", len(got), got[0])
	}
	for part := range one.Parts() {
		if err := byParts.LoadPart(part, one.AppendPart(nil, part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := byParts.all(); !slices.Equal(got, want) || byParts.next != one.next {
		t.Errorf("by parts %d samples, the next is number %d, not %d", len(got), byParts.next, one.next)
	}
	data, err := EncodeSamples(want)
	if got := decodeSamples(data); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d samples that were given, %v", len(got), err)
	}
}

// FuzzSamples decodes arbitrary log data; valid data is encoded identically.
func FuzzSamples(f *testing.F) {
	b := appendNumbered(nil, 1, model.Sample{Node: "a", URLs: 7, Seconds: 3})
	f.Add(b)
	f.Add(appendNumbered(b, 2049, model.Sample{Node: "b", Machine: model.Machine{GHz: 2.4}, URLs: 1, Seconds: 0.1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s, again samples
		if s.Apply(data) != nil {
			return
		}
		for part := range s.Parts() {
			if err := again.LoadPart(part, s.AppendPart(nil, part)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(s.all(), again.all()) {
			t.Error("read again, samples are others")
		}
	})
}

func appendNumbered(b []byte, number uint64, s model.Sample) []byte {
	w := varint.Writer(b)
	k := numberedSample{number, s}
	k.append(&w)
	return w
}
