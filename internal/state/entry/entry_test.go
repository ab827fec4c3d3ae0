package entry

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/member"
	"kumo/internal/content/cookies"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// script records the entries that it receives, in order.
type script []any

func (s *script) Found(it item.Item)             { *s = append(*s, it) }
func (s *script) Done(v Done)                    { *s = append(*s, v) }
func (s *script) Skip(k page.Skip)               { *s = append(*s, k) }
func (s *script) Undecided(payload string)       { *s = append(*s, "later", payload) }
func (s *script) DeferredRead(upTo int64)        { *s = append(*s, "asked", upTo) }
func (s *script) SkippedNew(k page.Skip)         { *s = append(*s, "out", k) }
func (s *script) SkippedPending(k page.Skip)     { *s = append(*s, "gone", k) }
func (s *script) Reported(url string)            { *s = append(*s, "told", url) }
func (s *script) Nearer(url string, depth int32) { *s = append(*s, url, depth) }
func (s *script) Counters(n stats.Sums)          { *s = append(*s, n) }
func (s *script) Deferred(k page.Skip)           { *s = append(*s, "aside", k) }
func (s *script) Mark(m store.Mark)              { *s = append(*s, m) }
func (s *script) OffHost(host string, n int64)   { *s = append(*s, host, n) }
func (s *script) Time(t time.Time)               { *s = append(*s, t) }
func (s *script) Recrawl(queued time.Time, it item.Item) {
	*s = append(*s, "again", queued, it)
}
func (s *script) Outgoing(n uint64, link string)      { *s = append(*s, "bound", n, link) }
func (s *script) Delivered(first, last uint64)        { *s = append(*s, "taken", first, last) }
func (s *script) SeedList(m SeedListMark)             { *s = append(*s, m) }
func (s *script) Chunk(c Chunk)                       { *s = append(*s, c) }
func (s *script) TransferDropped(t member.Transfer)   { *s = append(*s, "dropped", t) }
func (s *script) HostsForgotten(hosts []string)       { *s = append(*s, "forgot", hosts) }
func (s *script) TransfersDone(all []member.Transfer) { *s = append(*s, "went", all) }
func (s *script) EpochSettled(settled uint64)         { *s = append(*s, "epoch", settled) }
func (s *script) Dispatched(tenure int, it item.Item) { *s = append(*s, "dispatched", tenure, it) }
func (s *script) Ended(url string)                    { *s = append(*s, "ended", url) }
func (s *script) HostsReleased(hosts []string)        { *s = append(*s, "released", hosts) }
func (s *script) Cookie(c cookies.Cookie)             { *s = append(*s, c) }
func (s *script) Due(url string, m seen.Meta)         { *s = append(*s, "due", url, m) }

func sampleBatch() ([]byte, script) {
	it := item.Item{URL: "http://a/", From: "http://b/", Seed: "http://c/", Path: "LRE", Depth: 3, Kind: page.Redirect,
		Redirects: 2, ScopeSeed: true}
	d := Done{URL: "http://a/", Visit: stats.Visit{Host: "a", Status: 200, Type: "text/html", Bytes: 1 << 40,
		Took: time.Second, LinksCut: true, NeedsScript: true, Usage: "train_ai=n"},
		Meta: seen.Meta{Status: 200, Fetched: time.Unix(1e9, 0).UTC(), Modified: time.Unix(9e8, 0).UTC(), ETag: `"x"`,
			Digest: page.Digest{1, 2, 3}},
		Ref: page.Ref{URL: "http://a/", Time: time.UnixMicro(1e15).UTC(), ID: "urn:uuid:1"}}
	unchanged := Done{URL: "http://u/", Visit: stats.Visit{Host: "u", Status: 304, Recrawl: true},
		// the known content is confirmed
		Meta: seen.Meta{Status: 200, Fetched: time.Unix(1e9, 0).UTC(), Digest: [20]byte{7}, Content: 1<<63 + 1}}
	failed := Done{URL: "http://d/", Visit: stats.Visit{Host: "d", Failure: "dns"},
		Meta: seen.Meta{Fetched: time.Unix(1e9, 0).UTC()}}
	skip := page.Skip{URL: "http://e/", Host: "e", From: "http://a/", Depth: 1, Rule: "robots", Why: "Disallow: /"}
	mark := store.Mark{Name: "pages.jsonl", Length: 77}
	var e Encoder
	e.Found(&it)
	e.Done(&d)
	e.Done(&failed)
	e.Done(&unchanged)
	e.Skip(SkipKnown, &skip)
	e.Skip(SkipDeferred, &skip)
	e.Skip(SkipNew, &skip)
	e.Skip(SkipPending, &skip)
	e.Reported("http://f/")
	e.Nearer("http://g/", 2)
	e.Counters(stats.Sums{Retries: 1, Robots: 2, Links: 3, ExtraBytes: 4})
	e.Mark(mark)
	e.OffHost("elsewhere", 9)
	e.Undecided([]byte("payload"))
	e.DeferredRead(7)
	due := time.Unix(1_900_000_000, 0).UTC()
	again := item.Item{URL: "http://h/", Depth: 3, Kind: page.Sitemap, ScopeSeed: true, Recrawl: true}
	e.Recrawl(&again, due)
	e.Due("http://h/", &seen.Meta{Due: due, Every: time.Hour, Missing: 2, Kind: 9})
	e.From("http://h/", "http://f/")
	list := SeedListMark{Digest: "sha256:1", Name: "seeds.txt", Seeds: 9, Taken: 3, Offset: 1 << 40, Done: true}
	e.Outgoing(8, "link")
	e.Delivered(3, 1<<63-1)
	e.SeedList(&list)
	t := member.Transfer{From: "a~1", To: "b~2", Epoch: 7, Attempt: 9}
	chunk := Chunk{Transfer: t, Seq: 3, Last: true, Data: "chunk"}
	merged := chunk
	merged.Kept, merged.Excluded = []string{"a", "ab"}, []int{0, 5, 7}
	e.Chunk(chunk)
	e.Chunk(merged)
	e.TransferDropped(t)
	e.HostsForgotten([]string{"a", "ab", "b"})
	e.TransfersDone([]member.Transfer{t, t})
	e.EpochSettled(6)
	e.Dispatched(&it, 4)
	e.Ended("http://i/")
	e.HostsReleased([]string{"a", "ab"})
	k := cookies.Cookie{Name: "n", Value: "v", Domain: "a.example", Path: "/", Secure: true, Created: due, Set: due,
		Expires: due}
	e.Cookie(&k)
	e.Time(due)
	return e.Writer, script{it, d, failed, unchanged, skip, "aside", skip, "out", skip, "gone", skip, "told", "http://f/",
		"http://g/",
		int32(2),
		stats.Sums{Retries: 1, Robots: 2, Links: 3, ExtraBytes: 4}, mark, "elsewhere", int64(9), "later", "payload", "asked",
		int64(7), "again", due, again,
		"due", "http://h/", seen.Meta{Due: due, Every: time.Hour, Missing: 2, Kind: 9},
		"due", "http://h/", seen.Meta{From: "http://f/"}, "bound", uint64(8), "link", "taken",
		uint64(3), uint64(1<<63 - 1), list,
		chunk, merged, "dropped", t, "forgot", []string{"a", "ab", "b"}, "went", []member.Transfer{t, t}, "epoch", uint64(6),
		"dispatched", 4, it, "ended", "http://i/", "released", []string{"a", "ab"}, k, due.Local()}
}

func TestEntriesComeBack(t *testing.T) {
	b, want := sampleBatch()
	var got script
	if err := Read(b, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestABatchThatEndsEarlyIsRefused(t *testing.T) {
	b, _ := sampleBatch()
	var e Encoder
	e.Mark(store.Mark{Name: "x", Length: 1})
	for cut := 1; cut < len(e.Writer); cut++ {
		if err := Read(e.Writer[:cut], &script{}); err == nil {
			t.Errorf("cut at %d of %d: no error", cut, len(e.Writer))
		}
	}
	if err := Read(append(bytes.Clone(b), '?'), &script{}); err == nil {
		t.Error("an unknown kind of entry: no error")
	}
}

func FuzzRead(f *testing.F) {
	b, _ := sampleBatch()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) { Read(b, &script{}) })
}
