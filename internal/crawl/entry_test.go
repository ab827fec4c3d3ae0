package crawl

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"kumo/internal/item"
	"kumo/internal/member"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/store"
)

// script writes down what it is told, in the order in which it is told.
type script []any

func (s *script) found(it item.Item)             { *s = append(*s, it) }
func (s *script) done(v done)                    { *s = append(*s, v) }
func (s *script) skip(k page.Skip)               { *s = append(*s, k) }
func (s *script) later(payload string)           { *s = append(*s, "later", payload) }
func (s *script) asked(upTo int64)               { *s = append(*s, "asked", upTo) }
func (s *script) out(k page.Skip)                { *s = append(*s, "out", k) }
func (s *script) gone(k page.Skip)               { *s = append(*s, "gone", k) }
func (s *script) told(url string)                { *s = append(*s, "told", url) }
func (s *script) nearer(url string, depth int32) { *s = append(*s, url, depth) }
func (s *script) sums(n stats.Sums)              { *s = append(*s, n) }
func (s *script) aside(k page.Skip)              { *s = append(*s, "aside", k) }
func (s *script) mark(m store.Mark)              { *s = append(*s, m) }
func (s *script) off(host string, n int64)       { *s = append(*s, host, n) }
func (s *script) time(t time.Time)               { *s = append(*s, t) }
func (s *script) again(queued time.Time, it item.Item) {
	*s = append(*s, "again", queued, it)
}
func (s *script) bound(n uint64, link string) { *s = append(*s, "bound", n, link) }
func (s *script) taken(first, last uint64)    { *s = append(*s, "taken", first, last) }
func (s *script) list(m ListMark)             { *s = append(*s, m) }
func (s *script) came(c came)                 { *s = append(*s, c) }
func (s *script) dropped(t member.Transfer)   { *s = append(*s, "dropped", t) }
func (s *script) forgot(hosts []string)       { *s = append(*s, "forgot", hosts) }
func (s *script) went(all []member.Transfer)  { *s = append(*s, "went", all) }
func (s *script) epoch(settled uint64)        { *s = append(*s, "epoch", settled) }
func (s *script) due(url string, m seen.Meta) { *s = append(*s, "due", url, m) }

func sampleBatch() ([]byte, script) {
	it := item.Item{URL: "http://a/", From: "http://b/", Seed: "http://c/", Path: "LRE", Depth: 3, Kind: page.Redirect,
		Redirects: 2, Root: true}
	d := done{url: "http://a/", visit: stats.Visit{Host: "a", Status: 200, Type: "text/html", Bytes: 1 << 40,
		Took: time.Second},
		meta: seen.Meta{Status: 200, Fetched: time.Unix(1e9, 0).UTC(), Modified: time.Unix(9e8, 0).UTC(), ETag: `"x"`,
			Digest: page.Digest{1, 2, 3}},
		ref: page.Ref{URL: "http://a/", Time: time.UnixMicro(1e15).UTC(), ID: "urn:uuid:1"}}
	failed := done{url: "http://d/", visit: stats.Visit{Host: "d", Failure: "dns"},
		meta: seen.Meta{Fetched: time.Unix(1e9, 0).UTC()}}
	skip := page.Skip{URL: "http://e/", Host: "e", From: "http://a/", Depth: 1, Rule: "robots", Why: "Disallow: /"}
	mark := store.Mark{Name: "pages.jsonl", Length: 77}
	var e encoder
	e.found(&it)
	e.done(&d)
	e.done(&failed)
	e.skip(entrySkip, &skip)
	e.skip(entryAside, &skip)
	e.skip(entryOut, &skip)
	e.skip(entryGone, &skip)
	e.told("http://f/")
	e.nearer("http://g/", 2)
	e.sums(stats.Sums{Retries: 1, Robots: 2, Links: 3, ExtraBytes: 4})
	e.mark(mark)
	e.off("elsewhere", 9)
	e.later([]byte("payload"))
	e.asked(7)
	due := time.Unix(1_900_000_000, 0).UTC()
	again := item.Item{URL: "http://h/", Depth: 3, Kind: page.Sitemap, Root: true, Recrawl: true}
	e.again(&again, due)
	e.due("http://h/", &seen.Meta{Due: due, Every: time.Hour, Missing: 2, Kind: 9})
	list := ListMark{Digest: "sha256:1", Name: "seeds.txt", Seeds: 9, Taken: 3, Offset: 1 << 40, Done: true}
	e.bound(8, "link")
	e.taken(3, 1<<63-1)
	e.list(&list)
	t := member.Transfer{From: "a~1", To: "b~2", Epoch: 7, Attempt: 9}
	chunk := came{transfer: t, seq: 3, last: true, data: "chunk"}
	merged := chunk
	merged.kept, merged.left = []string{"a", "ab"}, []int{0, 5, 7}
	e.came(chunk)
	e.came(merged)
	e.dropped(t)
	e.forgot([]string{"a", "ab", "b"})
	e.went([]member.Transfer{t, t})
	e.epoch(6)
	e.time(due)
	return e.b, script{it, d, failed, skip, "aside", skip, "out", skip, "gone", skip, "told", "http://f/", "http://g/",
		int32(2),
		stats.Sums{Retries: 1, Robots: 2, Links: 3, ExtraBytes: 4}, mark, "elsewhere", int64(9), "later", "payload", "asked",
		int64(7), "again", due, again,
		"due", "http://h/", seen.Meta{Due: due, Every: time.Hour, Missing: 2, Kind: 9}, "bound", uint64(8), "link", "taken",
		uint64(3), uint64(1<<63 - 1), list,
		chunk, merged, "dropped", t, "forgot", []string{"a", "ab", "b"}, "went", []member.Transfer{t, t}, "epoch", uint64(6),
		due.Local()}
}

func TestEntriesComeBack(t *testing.T) {
	b, want := sampleBatch()
	var got script
	if err := read(b, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestABatchThatEndsEarlyIsRefused(t *testing.T) {
	b, _ := sampleBatch()
	var e encoder
	e.mark(store.Mark{Name: "x", Length: 1})
	for cut := 1; cut < len(e.b); cut++ {
		if err := read(e.b[:cut], &script{}); err == nil {
			t.Errorf("cut at %d of %d: no error", cut, len(e.b))
		}
	}
	if err := read(append(bytes.Clone(b), '?'), &script{}); err == nil {
		t.Error("an unknown kind of entry: no error")
	}
}

func FuzzRead(f *testing.F) {
	b, _ := sampleBatch()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) { read(b, &script{}) })
}
