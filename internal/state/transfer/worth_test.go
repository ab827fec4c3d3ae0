package transfer

import (
	"slices"
	"testing"

	"kumo/internal/base/item"
)

// The worth of links is transferred with each pending URL.
func TestWorthGoesWithWhatWaits(t *testing.T) {
	w := testWriter(t)
	worth := map[string]float32{"http://a.test/1": 2.5, "http://a.test/3": -0.5}
	w.worth = func(url string) float32 { return worth[url] }
	w.BeginPending("a.test", HostTiming{})
	for _, url := range []string{"http://a.test/1", "http://a.test/2", "http://a.test/3"} {
		w.Item(&item.Item{URL: url, Depth: 4, Lift: -3})
	}
	p, err := testUnpacker(t).Read(w.Chunk())
	if err != nil {
		t.Fatal(err)
	}
	if want := []Worth{{"http://a.test/1", 4, 2.5}, {"http://a.test/3", 4, -0.5}}; !slices.Equal(p.Worths, want) {
		t.Errorf("%+v, want %+v", p.Worths, want)
	}
	if len(p.Pending) != 1 || len(p.Pending[0].Items) != 3 || p.Pending[0].Items[2].Lift != -3 {
		t.Errorf("%+v", p.Pending)
	}
}
