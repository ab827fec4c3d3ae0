package urlgen

import "testing"

func TestStream(t *testing.T) {
	const n = 200_000
	s, again := New(7), New(7)
	known := map[string]int{}
	repeats, length := 0, 0
	for i := range n {
		url := string(s.Append(nil))
		if other := string(again.Append(nil)); other != url {
			t.Fatalf("the same seed gives %s and %s", url, other)
		}
		if _, ok := known[url]; ok {
			repeats++
		}
		known[url] = i
		length += len(url)
	}
	if share := float64(repeats) / n; share < Repeats-0.01 || share > Repeats+0.02 {
		t.Errorf("%.3f of the URLs were there before, want %.2f", share, Repeats)
	}
	t.Logf("%.1f bytes, %d known", float64(length)/n, len(known))
	if mean := float64(length) / n; mean < 75 || mean > 85 {
		t.Errorf("a URL has %.1f bytes, want about 80", mean)
	}
}

func BenchmarkStream(b *testing.B) {
	s, buf := New(1), []byte(nil)
	for b.Loop() {
		buf = s.Append(buf[:0])
	}
}
