package item

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAHostIsCutIntoEvenSlices(t *testing.T) {
	for _, n := range []int{2, 3, 16, MaxSlices} {
		s, met := NewSlices(n), map[string]int{}
		for i := range 100 * n {
			url := fmt.Sprint("https://", host, "/articles/", i)
			slice := s.Of(url)
			if HostOfSlice(slice) != host || slice != s.OfHost(host, url) || slice != s.Name(host, s.Number([]byte(url))) {
				t.Fatalf("%s is in %s", url, slice)
			}
			met[slice]++
		}
		all := slices.Collect(s.All(host))
		if len(all) != n || s.Count() != n {
			t.Fatalf("%d slices, not %d", len(all), n)
		}
		for _, slice := range all {
			if got := met[slice]; got < 30 || got > 200 {
				t.Errorf("%s has %d of %d URLs", slice, got, 100*n)
			}
		}
	}
}

func TestOneSliceIsTheHost(t *testing.T) {
	s, url := NewSlices(1), "https://"+host+"/a"
	if s.Of(url) != host || s.OfHost(host, url) != host || s.Count() != 1 || !slices.Equal(slices.Collect(s.All(host)),
		[]string{host}) {
		t.Error("a host with one slice has another name")
	}
	if NewSlices(4).Of("mailto:x@example.com") != "" {
		t.Error("what is at no host is in a slice")
	}
}

func TestAURLStaysInItsSlice(t *testing.T) { // processes of all versions must agree
	s := NewSlices(8)
	for url, want := range map[string]string{
		"https://example.com/":       "example.com#8",
		"http://example.com/":        "example.com#2",
		"https://example.com:8443/a": "example.com:8443#5",
		"https://[::1]:80/a?b=c":     "[::1]:80#4",
	} {
		if got := s.Of(url); got != want {
			t.Errorf("%s is in %s, not in %s", url, got, want)
		}
	}
}

func TestHostsAreNoSlices(t *testing.T) {
	for _, name := range []string{"example.com", "example.com:8080", "127.0.0.1", "[::1]:80", "", "7", "#7", "a#b"} {
		if got := HostOfSlice(name); got != name {
			t.Errorf("%q is a slice of %q", name, got)
		}
	}
}

func TestNamesOfSlicesAreKept(t *testing.T) {
	s := NewSlices(64)
	urls := make([]string, 1000)
	for i := range urls {
		urls[i] = fmt.Sprint("https://", strings.Repeat("w", i%5+1), ".example.com/", i)
		s.Of(urls[i])
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, url := range urls {
			s.Of(url)
		}
	}); n > 20 { // of names that share a cache slot
		t.Errorf("%v allocations for 1,000 links", n)
	}
}
