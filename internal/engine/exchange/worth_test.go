package exchange

import (
	"math"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/entry"
	"kumo/internal/state/journal"
	"kumo/internal/state/ledger"
	"kumo/internal/state/store"
)

// journalled has the links for other nodes in a journal.
type journalled struct {
	entry.Reader
	links entry.Links
}

func (j journalled) Outgoing(number uint64, link string) { j.links[number] = link }

func worthOutbox() *Outbox {
	keep := func(b []byte) []byte { return b }
	l := ledger.New(ledger.Config{Journal: journal.Discard, Every: time.Hour, MaxPending: 1 << 20, Now: time.Now,
		Begin: func(b []byte, _ time.Time) []byte { return b }, Extra: keep,
		Mark: func(b []byte, _ store.Mark) []byte { return b }})
	return New(Config{Ledger: l, MaxBytes: 1 << 30, Hold: func(bool) {}}, nil)
}

func toOther(string) (strategy.Node, bool) { return "other", true }

// sent sends and answers all batches that are due, and returns their links' worths.
func sent(t *testing.T, o *Outbox, now time.Time) (worths []float32) {
	t.Helper()
	for _, b := range o.Batches(now, toOther) {
		err := Read(b.Data, func(c entry.Candidate, _ []byte) { worths = append(worths, c.Worth) })
		if err != nil {
			t.Fatal(err)
		}
		o.Answered(b.To, b.Number, nil, now)
	}
	return worths
}

// TestALinkIsSentForWhatItAdds: worths of links to a URL are added up while one is in the outbox, and sent again if it
// was sent already; the journal records the sent worths.
func TestALinkIsSentForWhatItAdds(t *testing.T) {
	o, now := worthOutbox(), time.Now()
	var enc entry.Encoder
	put := func(worth float32) {
		o.Put(&enc, &entry.Candidate{Host: "a.test", Worth: worth,
			Item: item.Item{URL: "http://a.test/", From: "http://b.test/", Kind: page.Anchor}}, nil)
	}
	for range 16 {
		put(1)
	}
	put(-2)
	kept := entry.Links{}
	if err := entry.Read(enc.Writer, journalled{entry.NopReader(), kept}); err != nil || len(kept) != 1 {
		t.Fatalf("%d links are journalled: %v", len(kept), err)
	}
	again := New(o.cfg, kept)
	for _, o := range []*Outbox{o, again} {
		if got := sent(t, o, now); len(got) != 1 || got[0] != 14 {
			t.Fatalf("of 16 links there went %v", got)
		}
	}
	put(2)
	if got := sent(t, o, now); len(got) != 1 || got[0] != 2 {
		t.Errorf("of two more there went %v", got)
	}
	put(0)
	if got := sent(t, o, now); len(got) != 0 {
		t.Errorf("what adds nothing was sent: %v", got)
	}
}

// TestWhatComesTwiceIsKnown: a batch that is sent again, by this process or the next, has the same tags.
func TestWhatComesTwiceIsKnown(t *testing.T) {
	o := worthOutbox()
	var enc entry.Encoder
	for _, url := range []string{"http://a.test/", "http://a.test/b"} {
		o.Put(&enc, &entry.Candidate{Host: "a.test", Worth: 1, Item: item.Item{URL: url, Kind: page.Anchor}}, nil)
	}
	kept := entry.Links{}
	if err := entry.Read(enc.Writer, journalled{entry.NopReader(), kept}); err != nil {
		t.Fatal(err)
	}
	var all [][]uint32
	for _, o := range []*Outbox{o, o, New(o.cfg, kept)} {
		var tags []uint32
		for _, b := range o.Batches(time.Now().Add(time.Hour*time.Duration(len(all))), toOther) {
			err := Read(b.Data, func(c entry.Candidate, _ []byte) { tags = append(tags, c.Tag) })
			if err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(tags)
		all = append(all, tags)
	}
	if a := all[0]; len(a) != 2 || a[0] == a[1] || a[0] == 0 || !slices.Equal(a, all[1]) || !slices.Equal(a, all[2]) {
		t.Errorf("tags %v", all)
	}
}

// TestNoWorthWithoutAnEnd: links from another node with an impossible worth are rejected.
func TestNoWorthWithoutAnEnd(t *testing.T) {
	for _, worth := range []float32{-1e30, float32(math.NaN()), float32(math.Inf(1)), 1e30} {
		var enc entry.Encoder
		enc.Candidate(&entry.Candidate{Host: "a.test", Worth: worth,
			Item: item.Item{URL: "http://a.test/", Kind: page.Anchor}})
		data := member.AppendLink([]byte{member.LinksVersion}, []byte(enc.Writer))
		if err := Read(data, func(entry.Candidate, []byte) {}); err == nil {
			t.Errorf("%v is taken", worth)
		}
	}
}
