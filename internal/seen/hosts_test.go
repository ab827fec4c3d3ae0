package seen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kumo/internal/vfs"
)

// Hosts in pieces of any length are those of all URLs, wherever these lie.
func TestHostsAreThoseOfAllURLs(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	db, err := Open(vfs.OS, t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names := []string{"a", "a-b", "a.b", "a:8080", "ab", "b", "b.example", "b:1", "c-", "xn--c"}
	want := map[string]bool{}
	for part := range 3 {
		var urls []URL
		for range 5000 { // more than are skipped of each
			host := names[dice.IntN(len(names))] + []string{"", ".test"}[dice.IntN(2)]
			want[host] = true
			urls = append(urls, URL{URL: fmt.Sprintf("%s://%s/%d", []string{"http", "https"}[dice.IntN(2)], host, dice.IntN(100_000)), State: Known})
		}
		db.Offer(urls, nil)
		if part < 2 {
			db.Freeze(0)
		}
		if part == 0 { // the first lies on the disk, the second is on its way there
			if err := db.Merge(t.Context(), func([]Decided) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, prefix := range []string{"", "a", "b.", "a/", "none"} {
		var all []string
		for host := range want {
			if strings.HasPrefix(host+"/", prefix) {
				all = append(all, host)
			}
		}
		slices.SortFunc(all, compareHosts)
		for _, n := range []int{1, 3, 100} {
			var got []string
			for after := ""; ; {
				some, err := db.Hosts(prefix, after, n)
				if err != nil {
					t.Fatal(err)
				}
				if len(some) == 0 {
					break
				}
				got = append(got, some...)
				after = some[len(some)-1]
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s, %d at a time: %q\nwant %q", prefix, n, got, all)
			}
		}
	}
	for e, err := range db.ScanAfter("http://a/", "http://a/5") {
		if err != nil || e.URL <= "http://a/5" || !strings.HasPrefix(e.URL, "http://a/") {
			t.Fatal(e.URL, err)
		}
	}
}
