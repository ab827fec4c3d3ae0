package seen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/mem"
)

// Hosts, read in pieces of any length, returns the hosts of all URLs, in memory and on disk.
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
		for range 5000 { // more than skipAfter per host
			host := names[dice.IntN(len(names))] + []string{"", ".test"}[dice.IntN(2)]
			want[host] = true
			urls = append(urls, URL{URL: fmt.Sprintf("%s://%s/%d", []string{"http", "https"}[dice.IntN(2)], host,
				dice.IntN(100_000)), State: Known})
		}
		db.Offer(urls, nil)
		if part < 2 {
			db.Freeze(0)
		}
		if part == 0 { // the first part is on disk, the second is being merged
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
				db.Arrange(time.Hour)
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
	db.Arrange(time.Hour)
	for e, err := range db.ScanAfter("http://a/", "http://a/5") {
		if err != nil || e.URL <= "http://a/5" || !strings.HasPrefix(e.URL, "http://a/") {
			t.Fatal(e.URL, err)
		}
	}
}

// A query while URLs are offered, frozen, merged and compacted returns everything that was there before it, nothing
// that was not there after it, and all in order.
func TestLooksWhileItIsFilled(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	db, err := Open(vfs.OS, t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var met offered
	filled := make(chan error, 1)
	go func() {
		dice := rand.New(rand.NewPCG(seed, 1))
		filled <- func() error {
			for round := range 60 {
				for range dice.IntN(40) {
					urls := make([]URL, dice.IntN(50))
					for i := range urls {
						urls[i] = URL{URL: fmt.Sprintf("http%s://h%d.test/%d", []string{"", "s"}[dice.IntN(2)], dice.IntN(3000),
							dice.IntN(3)), State: Known}
					}
					met.offer(db, urls)
				}
				if round%4 != 3 {
					continue
				}
				db.Freeze(0)
				if err := db.Merge(t.Context(), func([]Decided) error { return nil }); err != nil {
					return err
				}
				if err := CompactAll(t.Context(), db); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	dice := rand.New(rand.NewPCG(seed, 2))
	for done := false; !done; {
		select {
		case err := <-filled:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		after := fmt.Sprintf("h%d.test", dice.IntN(3000))
		met.check(t, "h", after, compareHosts, hostIn, func(n int) ([]string, error) {
			db.Arrange(time.Hour)
			return db.Hosts("h", after, n)
		})
		prefix := fmt.Sprintf("https://h%d", dice.IntN(300))
		met.check(t, prefix, prefix, strings.Compare, func(url string) string { return url },
			func(n int) (all []string, err error) {
				db.Arrange(time.Hour)
				for e, failed := range db.ScanAfter(prefix, prefix) {
					if err = failed; err != nil || len(all) == n {
						break
					}
					all = append(all, e.URL)
				}
				return all, err
			})
	}
}

func hostIn(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	return hostOf(rest)
}

// offered are the URLs that were offered.
type offered struct {
	mu   sync.Mutex // guards the fields below, and is held during an offer
	urls map[string]bool
}

func (m *offered) offer(db *DB, urls []URL) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.urls == nil {
		m.urls = map[string]bool{}
	}
	for i := range urls {
		m.urls[strings.Clone(urls[i].URL)] = true
	}
	db.Offer(urls, nil)
}

// from returns the offered URLs that begin with prefix and come after another, in order.
func (m *offered) from(prefix, after string, compare func(a, b string) int, of func(url string) string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for url := range m.urls {
		if x := of(url); strings.HasPrefix(x, prefix) && compare(x, after) > 0 {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

// check queries the first few.
func (m *offered) check(t *testing.T, prefix, after string, compare func(a, b string) int, of func(url string) string,
	ask func(n int) ([]string, error)) {
	t.Helper()
	const n = 20
	before := m.from(prefix, after, compare, of)
	got, err := ask(n)
	if err != nil {
		t.Fatal(err)
	}
	now := m.from(prefix, after, compare, of)
	if !slices.IsSortedFunc(got, compare) || len(slices.Compact(slices.Clone(got))) != len(got) ||
		len(got) < min(n, len(before)) {
		t.Fatalf("after %s: %d, in this order: %q; there were %d", after, len(got), got, len(before))
	}
	for _, x := range got {
		if _, is := slices.BinarySearchFunc(now, x, compare); !is {
			t.Errorf("after %s: %s, which was never offered", after, x)
		}
	}
	for _, x := range before {
		if _, is := slices.BinarySearchFunc(got, x, compare); !is && (len(got) < n || compare(x, got[n-1]) < 0) {
			t.Errorf("after %s: %q, without %s", after, got, x)
		}
	}
}

// The first query of a table with many records, without patience, returns how many are missing; soon none are. Queries
// that need all wait for them.
func TestMuchIsPutInOrderBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(vfs.OS, t.TempDir(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		const few, n = 1000, 2*mem.LongList + 7
		offer := func(scheme string, from, to int) {
			var urls []URL
			for i := from; i < to; i++ {
				urls = append(urls, URL{URL: fmt.Sprintf("%s://h%d.test/", scheme, i), State: Known})
			}
			db.Offer(urls, nil)
		}
		offer("http", 0, few)
		all := 0
		for _, err := range db.Scan("http://") {
			if all++; err != nil {
				t.Fatal(err)
			}
		}
		if all != few {
			t.Errorf("%d URLs in all, not %d", all, few)
		}
		if db.Freeze(0); db.Arrange(0) != 0 {
			t.Error("what was in order is so no more")
		}
		offer("https", 0, n)
		for want := n; ; { // it pauses for as long as it works, which is no time here
			behind := db.Arrange(0)
			if behind > want {
				t.Fatalf("%d URLs are not in order, and were %d before", behind, want)
			}
			names, err := db.Hosts("", "", 2*n)
			if err != nil || len(names) < few || behind == 0 && len(names) != n {
				t.Fatalf("%d hosts while %d URLs were not in order: %v", len(names), behind, err)
			}
			if want = behind; want == 0 {
				break
			}
		}
		synctest.Wait()
	})
}
