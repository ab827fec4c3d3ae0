package frontier

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// walked returns the URLs and the errors that a walk finds.
func walked(t *testing.T, f *Frontier) (urls map[string]int, bad []error) {
	t.Helper()
	urls = map[string]int{}
	err := f.Inspector().Walk(Walker{
		Item: func(host string, it *Item) error {
			if !strings.HasPrefix(it.URL, "http://"+host+"/") {
				t.Errorf("%s is told as one of %s", it.URL, host)
			}
			urls[it.URL]++
			return nil
		},
		Damaged: func(err error) { bad = append(bad, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return urls, bad
}

func TestWalkFindsAllThatWaits(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, Memory: 64 << 10}
	f, _, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const hosts, items = 40, 300
	for i := range items {
		for h := range hosts {
			host := fmt.Sprintf("h%d.test", h)
			f.Push(host, Item{URL: fmt.Sprintf("http://%s/%d", host, i), Rank: int32(i % 7)})
		}
	}
	f.Push("h0.test", Item{URL: "http://h0.test/robots.txt", Robots: "http://h0.test"})
	check := func(f *Frontier, want int) {
		t.Helper()
		urls, bad := walked(t, f)
		if len(urls) != want || len(bad) > 0 {
			t.Errorf("%d of %d URLs, and %v", len(urls), want, bad)
		}
		for url, n := range urls {
			if n != 1 {
				t.Errorf("%s is told %d times", url, n)
			}
		}
	}
	check(f, hosts*items)
	if err := errors.Join(f.Checkpoint(nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	f, _, err = Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	check(f, hosts*items)
	f.Suppress("http://h3.test/33")
	check(f, hosts*items-1)
	// as when a dead node's lost record is fetched again
	f.Restore("h3.test", Item{URL: "http://h3.test/33", Refetch: true})
	check(f, hosts*items)
	all, err := f.Inspector().Queue("h3.test", items)
	if err != nil {
		t.Fatal(err)
	}
	queued := 0
	for i := range all {
		if all[i].URL == "http://h3.test/33" {
			queued++
		}
	}
	if queued != 1 {
		t.Errorf("the list of a queue has an item that was restored %d times", queued)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	names, err := filepath.Glob(filepath.Join(dir, segmentPrefix+"*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(names[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, _, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, bad := walked(t, f); len(bad) == 0 || !errors.Is(bad[0], errBlock) {
		t.Errorf("a damaged block: %v", bad)
	}
}
