package seen

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/run"
	"kumo/internal/state/seen/tier"
)

var schemes = [...]string{"http://", "https://"}

// Hosts returns the first n hosts, with ports, that have URLs, begin with prefix and follow the host after ("": all),
// in the order of their URLs. It skips a host's URLs, so large hosts cost no more than others. From memory, it uses
// only what Arrange has sorted.
func (q *queries) Hosts(prefix, after string, n int) ([]string, error) {
	if n <= 0 {
		return nil, nil
	}
	from := prefix
	if after != "" {
		from = max(from, afterHost(after))
	}
	first := firstHosts{n: n}
	q.hostsInMemory(&first, prefix, from)
	view := q.tiers.Pin()
	defer view.Release() //nolint:errcheck // the data read is correct regardless
	for _, scheme := range schemes {
		for at, more := from, true; more; {
			var err error
			if at, more, err = hostsOnDisk(&first, view, scheme, prefix, at); err != nil {
				return nil, fmt.Errorf("find hosts among the known URLs: %w", err)
			}
		}
	}
	return first.all, nil
}

// skipAfter is how many URLs of a host are read before a seek to the host's end pays off.
const skipAfter = 64

// hostsOnDisk adds hosts, starting at from. It returns where to continue, if there may be more.
func hostsOnDisk(first *firstHosts, view *tier.View, scheme, prefix, from string) (next string, more bool, err error) {
	found := run.Merge(mergeValues, onDisk(view, scheme+from)...)
	host, same := "", 0
	for found.Next() {
		rest, is := bytes.CutPrefix(found.Key(), []byte(scheme))
		if !is || !bytes.HasPrefix(rest, []byte(prefix)) || first.end != "" && string(rest) >= first.end {
			return "", false, nil
		}
		if now, _, _ := bytes.Cut(rest, []byte("/")); string(now) != host {
			host, same = string(now), 0
			first.add(host)
		} else if same++; same == skipAfter {
			return afterHost(host), true, nil
		}
	}
	return "", false, found.Err()
}

func (q *queries) hostsInMemory(first *firstHosts, prefix, from string) {
	defer q.unpin()
	for _, t := range q.pin() {
		for _, scheme := range schemes {
			q.hostsOfTable(first, t, scheme, prefix, from)
		}
	}
}

func (q *queries) hostsOfTable(first *firstHosts, t *mem.Table, scheme, prefix, from string) {
	w := q.arranger.order(t).From([]byte(scheme + from))
	for n := 0; n < first.n && w.Next(); n++ {
		rest, is := bytes.CutPrefix(w.Key(), []byte(scheme))
		if !is || !bytes.HasPrefix(rest, []byte(prefix)) || first.end != "" && string(rest) >= first.end {
			break
		}
		host := hostOf(string(rest))
		first.add(host)
		w.Skip([]byte(scheme + afterHost(host)))
	}
}

// firstHosts collects the first n hosts of URLs, which are given without their schemes.
type firstHosts struct {
	n   int
	all []string
	end string // follows all URLs of the last host, once there are n
}

func (f *firstHosts) add(rest string) {
	host := hostOf(rest)
	i, has := slices.BinarySearchFunc(f.all, host, compareHosts)
	if has || i == f.n {
		return
	}
	f.all = slices.Insert(f.all, i, strings.Clone(host))
	if f.all = f.all[:min(f.n, len(f.all))]; len(f.all) == f.n {
		f.end = afterHost(f.all[f.n-1])
	}
}

// compareHosts compares hosts in the order of their URLs, as if each ended with a slash.
func compareHosts(a, b string) int {
	n := min(len(a), len(b))
	switch c := strings.Compare(a[:n], b[:n]); {
	case c != 0 || len(a) == len(b):
		return c
	case len(a) < len(b):
		return cmp.Compare('/', b[n])
	}
	return cmp.Compare(a[n], '/')
}

func hostOf(rest string) string {
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// afterHost returns the first string after all URLs of a host.
func afterHost(host string) string { return host + string(rune('/'+1)) }
