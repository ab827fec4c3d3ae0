package seen

import (
	"fmt"
	"sync"
	"testing"
)

func TestOffer(t *testing.T) {
	s := New()
	steps := []struct {
		say   string
		url   URL
		news  News
		depth int32
	}{
		{"a first time", URL{URL: "http://a/", Depth: 3, State: Known}, Fresh, 3},
		{"again", URL{URL: "http://a/", Depth: 4, State: Known}, Nothing, 3},
		{"again, nearer", URL{URL: "http://a/", Depth: 1, State: Known}, Nearer, 1},
		{"set aside after it was known", URL{URL: "http://a/", Depth: 0, State: Deferred}, Nothing, 1},
		{"set aside first", URL{URL: "http://b/", Depth: 9, State: Deferred}, Fresh, 9},
		{"set aside twice", URL{URL: "http://b/", Depth: 8, State: Deferred}, Nearer, 8},
		{"brought in by a better link", URL{URL: "http://b/", Depth: 2, State: Known}, Fresh, 2},
	}
	for _, st := range steps {
		if got := s.Offer([]URL{st.url}, nil); got[0] != st.news {
			t.Errorf("%s: news = %v, want %v", st.say, got[0], st.news)
		}
		if _, got := s.Get(st.url.URL); got != st.depth {
			t.Errorf("%s: depth = %d, want %d", st.say, got, st.depth)
		}
	}
	if state, _ := s.Get("http://c/"); state != Unknown || s.Len() != 2 {
		t.Errorf("state = %v, Len = %d", state, s.Len())
	}
}

func TestEachIsFreshOnceAmongMany(t *testing.T) {
	s := New()
	var wg sync.WaitGroup
	counts := make([]int, 8)
	for g := range counts {
		wg.Go(func() {
			var batch []URL
			for i := range 1000 {
				batch = append(batch, URL{URL: fmt.Sprintf("http://a/%d", i), Depth: 1, State: Known})
			}
			for _, f := range s.Offer(batch, nil) {
				if f == Fresh {
					counts[g]++
				}
			}
		})
	}
	wg.Wait()
	if s.Len() != 1000 || total(counts) != 1000 {
		t.Errorf("Len = %d, fresh in all %d", s.Len(), total(counts))
	}
}

func total(ns []int) (sum int) {
	for _, n := range ns {
		sum += n
	}
	return sum
}

func BenchmarkOffer(b *testing.B) {
	const links = 40
	s, batch, fresh := New(), make([]URL, links), make([]News, 0, links)
	urls := make([]string, 100_000)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%d.example.com/some/folder/page-%d.html", i%100, i)
	}
	b.ReportAllocs()
	for i := range b.N {
		for j := range batch {
			batch[j] = URL{URL: urls[(i*links+j*j)%len(urls)], Depth: 1, State: Known}
		}
		fresh = s.Offer(batch, fresh[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*links), "ns/URL")
}
