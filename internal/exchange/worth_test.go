package exchange

import (
	"math"
	"testing"
	"time"

	"kumo/internal/entry"
	"kumo/internal/item"
	"kumo/internal/journal"
	"kumo/internal/ledger"
	"kumo/internal/member"
	"kumo/internal/page"
	"kumo/internal/store"
	"kumo/internal/strategy"
)

func worthOutbox() *Outbox {
	keep := func(b []byte) []byte { return b }
	l := ledger.New(ledger.Config{Journal: journal.Discard, Every: time.Hour, Room: 1 << 20, Now: time.Now,
		Begin: func(b []byte, _ time.Time) []byte { return b }, Extra: keep,
		Mark: func(b []byte, _ store.Mark) []byte { return b }})
	return New(Config{Ledger: l, Most: 1 << 30, Hold: func(bool) {}}, nil)
}

// sent are the links of all batches that are to be sent now, which are answered.
func sent(t *testing.T, o *Outbox, now time.Time) (worths []float32) {
	t.Helper()
	for _, b := range o.Batches(now, func(string) (strategy.Node, bool) { return "other", true }) {
		err := Read(b.Data, func(c entry.Candidate, _ []byte) { worths = append(worths, c.Worth) })
		if err != nil {
			t.Fatal(err)
		}
		o.Answered(b.To, b.Number, nil, now)
	}
	return worths
}

// TestALinkIsSentAgainForWhatItAdds: what links to a URL are worth is added up while it waits, and sent again once it
// is an eighth more.
func TestALinkIsSentAgainForWhatItAdds(t *testing.T) {
	o, now := worthOutbox(), time.Now()
	put := func(worth float32) {
		var enc entry.Encoder
		o.Put(&enc, &entry.Candidate{Host: "a.test", Worth: worth,
			Item: item.Item{URL: "http://a.test/", From: "http://b.test/", Kind: page.Anchor}}, nil)
	}
	for range 16 {
		put(1)
	}
	if got := sent(t, o, now); len(got) != 1 || got[0] != 16 {
		t.Fatalf("of 16 links there went %v", got)
	}
	put(1)
	if got := sent(t, o, now); len(got) != 0 {
		t.Errorf("a sixteenth more was sent: %v", got)
	}
	put(1)
	if got := sent(t, o, now); len(got) != 1 || got[0] != 2 {
		t.Errorf("of an eighth more there went %v", got)
	}
	put(0)
	if got := sent(t, o, now); len(got) != 0 {
		t.Errorf("what adds nothing was sent: %v", got)
	}
}

// TestNoWorthWithoutAnEnd: another node's links are refused if they are worth what no links can be.
func TestNoWorthWithoutAnEnd(t *testing.T) {
	for _, worth := range []float32{-1, float32(math.NaN()), float32(math.Inf(1)), 1e30} {
		var enc entry.Encoder
		enc.Candidate(&entry.Candidate{Host: "a.test", Worth: worth,
			Item: item.Item{URL: "http://a.test/", Kind: page.Anchor}})
		data := member.AppendLink([]byte{member.LinksVersion}, []byte(enc.Writer))
		if err := Read(data, func(entry.Candidate, []byte) {}); err == nil {
			t.Errorf("%v is taken", worth)
		}
	}
}
