package seen

import (
	"fmt"
	"slices"
	"strings"

	"kumo/internal/seen/mem"
	"kumo/internal/seen/run"
)

// Origins are the first n schemes with hosts ("https://example.com") whose URLs begin with prefix and come after those
// of the origin after ("": from the first on), in the order of their URLs. It looks for the next origin behind each
// one's URLs, so that hosts with millions of URLs cost no more than others; what memory has it goes through once.
func (d *DB) Origins(prefix, after string, n int) ([]string, error) {
	from := prefix
	if after != "" {
		from = max(from, behind(after))
	}
	all := d.originsInMemory(prefix, from, n)
	last := "" // found in memory: beyond it nothing is wanted of the disk
	if len(all) == n && n > 0 {
		last = all[n-1]
	}
	view := d.tiers.Pin()
	defer view.Release() //nolint:errcheck // what was read is right all the same
	for range n {
		sources := view.Scan([]byte(from))
		for _, s := range view.Waiting().Scan([]byte(from)) {
			sources = append(sources, bare{s})
		}
		found := run.Merge(fold, sources...)
		if !found.Next() {
			if err := found.Err(); err != nil {
				return nil, fmt.Errorf("find hosts among the known URLs: %w", err)
			}
			break
		}
		key := string(found.Key())
		origin := originOf(key)
		if !strings.HasPrefix(key, prefix) || last != "" && origin+"/" > last+"/" {
			break
		}
		if i, has := slices.BinarySearchFunc(all, origin, compareOrigins); !has {
			all = slices.Insert(all, i, origin)
		}
		from = behind(origin)
	}
	return all[:min(max(n, 0), len(all))], nil
}

// originsInMemory are the first n of what is not on the disk yet.
func (d *DB) originsInMemory(prefix, from string, n int) []string {
	defer d.unpinTables()
	f := firstOrigins{n: n}
	for _, t := range d.pinTables() {
		if t == nil || n <= 0 {
			continue
		}
		for i := range mem.Groups { // the lock is held for one group of records at a time
			d.mu.Lock()
			for ref := range t.Group(i) {
				if key := t.Key(ref); string(key) >= from && strings.HasPrefix(string(key), prefix) {
					f.add(key)
				}
			}
			d.mu.Unlock()
		}
	}
	return f.all
}

// firstOrigins keeps the first n origins of the URLs that it is given.
type firstOrigins struct {
	n   int
	all []string
	end string // behind all URLs of the last, once there are n
}

func (f *firstOrigins) add(key []byte) {
	if f.end != "" && string(key) >= f.end {
		return
	}
	origin := originOf(string(key))
	i, has := slices.BinarySearchFunc(f.all, origin, compareOrigins)
	if has {
		return
	}
	f.all = slices.Insert(f.all, i, origin)
	if f.all = f.all[:min(f.n, len(f.all))]; len(f.all) == f.n {
		f.end = behind(f.all[f.n-1])
	}
}

// compareOrigins has origins in the order of their URLs.
func compareOrigins(a, b string) int { return strings.Compare(a+"/", b+"/") }

// originOf is the part of a URL before its path.
func originOf(url string) string {
	at := strings.Index(url, "://") + len("://")
	if i := strings.IndexByte(url[at:], '/'); i >= 0 {
		return url[:at+i]
	}
	return url
}

// behind is what comes next after all URLs of an origin.
func behind(origin string) string { return origin + string(rune('/'+1)) }
