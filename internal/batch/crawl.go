package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/item"
)

// crawl fetches the URLs of a round.
//
// Its keys begin with a hash of the URL, so that each reducer gets a host's URLs mixed evenly with the others' and can
// keep every host busy without holding them all in memory. The rest of the key is the URL without its collection, so
// that a URL requested by several collections is fetched once.
func (s *setup) crawl() *Job {
	return &Job{Name: JobCrawl, Map: s.crawlMap, Combine: crawlCombine, Partition: s.crawlPartition,
		Reduce: s.crawlReduce, Route: s.crawlRoute, WaitsForServers: true}
}

const hashLen = 8

// shuffleKey returns the key of a URL between map and reduce.
func shuffleKey(url string) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, hashLen+len(url)), xxhash.Sum64String(url))
	return append(b, url...)
}

// appendWithKey appends an InURL's key and value, as one value between map and reduce.
func (in *InURL) appendWithKey(b []byte) []byte {
	return in.Append(append(append(b, in.Collection...), ' '))
}

func readWithKey(url string, value []byte) (InURL, error) {
	code, rest, _ := bytes.Cut(value, []byte{' '})
	return ReadInURL(Key(string(code), url), rest)
}

// crawlMap emits the round's URLs. For known URLs, it emits those that are due and seeds, which are always requested;
// both are requested conditionally.
func (s *setup) crawlMap(_ context.Context, t *Task, r Record, emit Emit) error {
	var in InURL
	if KindOf(r.Value) == KindKnown {
		k, err := ReadKnown(r.Key, r.Value)
		if err != nil {
			return err
		}
		m, err := s.member(k.Collection)
		if err != nil {
			return err
		}
		in = s.fromKnown(m, &k)
		if !in.Due && !m.isSeed[k.URL] {
			return nil
		}
		if in.Due {
			m.count(t, "due", 1)
		}
	} else {
		var err error
		if in, err = ReadInURL(r.Key, r.Value); err != nil {
			return err
		}
	}
	return emit(shuffleKey(in.URL), in.appendWithKey(nil))
}

// fromKnown returns the InURL of a known URL.
func (s *setup) fromKnown(m *member, k *Known) InURL {
	in := InURL{Collection: k.Collection, URL: k.URL, Depth: k.Depth, Seed: k.Seed, Known: true, Digest: k.Digest}
	if k.Status == 200 {
		in.ETag, in.Modified = k.ETag, k.Modified
	}
	// by day: a page fetched in the evening is due in the morning if it is due on that day
	due := m.recrawl.IntervalFor(k.URL).Due(k.Visits)
	in.Due = !due.IsZero() && due.UTC().Format(dateFormat) <= s.Date
	return in
}

const dateFormat = "2006-01-02"

// crawlCombine merges the InURLs of a URL, one per collection.
func crawlCombine(key []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
	all, err := readAllWithKeys(string(key[hashLen:]), values)
	if err != nil {
		return err
	}
	for i := range all {
		if err := emit(all[i].appendWithKey(nil)); err != nil {
			return err
		}
	}
	return nil
}

// readAllWithKeys reads the InURLs of a URL, one for each collection and robots.txt.
func readAllWithKeys(url string, values iter.Seq[[]byte]) (all []InURL, err error) {
	for v := range values {
		in, err := readWithKey(url, v)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(o InURL) bool { return o.Collection == in.Collection && o.Robots == in.Robots })
		if i < 0 {
			all = append(all, in)
			continue
		}
		all[i].merge(&in)
	}
	slices.SortFunc(all, func(a, b InURL) int {
		return cmp.Or(cmp.Compare(a.Collection, b.Collection), cmp.Compare(a.Robots, b.Robots))
	})
	return all, nil
}

// crawlPartition assigns all URLs of a host to the same reducer.
func (s *setup) crawlPartition(key []byte, n int) int {
	return s.partitionOf(item.HostOf(string(key[hashLen:])), n)
}

func (s *setup) partitionOf(host string, n int) int {
	if p, ok := s.Hosts[host]; ok && p < n {
		return p
	}
	return HashPartition([]byte(host), n)
}

// crawlRoute writes URLs that are deferred to the next round to their own folder.
func (s *setup) crawlRoute(key, value []byte) Route {
	r := s.route(key, value)
	if KindOf(value) == KindInURL {
		code, _, _ := SplitKey(key) // was parsed before
		if m := s.members[code]; m != nil {
			r.Folder = m.Directory + "/" + WaitFolder
		}
	}
	return r
}

// WaitFolder is the folder, below a collection's, of URLs that a round defers to the next.
const WaitFolder = "wait"
