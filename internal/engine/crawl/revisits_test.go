package crawl

import (
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
)

func aRevisit() (*planned, *item.Item) {
	p := &planned{last: time.Unix(1_700_000_000, 0).UTC()}
	p.meta = seen.Meta{Fetched: p.last, Due: p.last.Add(time.Hour), Every: time.Hour, Missing: 2, Status: 200,
		Digest: [20]byte{1}, Content: 7, ETag: `"x"`, Modified: p.last.Add(-time.Hour), Queued: p.last, Tenure: 3, Changes: 4}
	return p, &item.Item{URL: "http://a.example/x?y", From: "http://a.example/", Seed: "http://a.example/", Path: "L",
		Depth: 3, Kind: page.Anchor, Tries: 2, Recrawl: true, Deferred: true}
}

// TestARevisitHasWhatItsVisitNeeds encodes a visit and decodes it at another node.
func TestARevisitHasWhatItsVisitNeeds(t *testing.T) {
	p, it := aRevisit()
	r := p.revisitOf(it)
	m, c, ok := readRevisit(r)
	want := p.meta
	want.Queued, want.Tenure, want.Changes = time.Time{}, 0, 0 // of this node only
	if !ok || m != want || r.Number != uint64(p.last.Unix()) {
		t.Errorf("got %v %d %+v, want %+v", ok, r.Number, m, want)
	}
	wanted := item.Item{URL: it.URL, From: it.From, Depth: 3, Kind: page.Anchor}
	if c.Item != wanted {
		t.Errorf("got %+v, want %+v", c.Item, wanted)
	}
	if n := len(r.Data) - len(it.URL); n > 80 {
		t.Errorf("%d bytes besides the URL", n)
	}
	ds := &Dispatches{cfg: &Config{Recrawl: policy.Recrawl{Intervals: []policy.Interval{{Every: 2 * time.Hour,
		Min: time.Minute, Max: 2 * time.Hour}}}}}
	if due := ds.RevisitDue(r); !due.Equal(p.meta.Due) {
		t.Errorf("due at %v, want %v", due, p.meta.Due)
	}
	ds.cfg.Recrawl.Intervals[0] = policy.Interval{Every: 2 * time.Minute, Min: time.Minute, Max: 3 * time.Minute}
	if due := ds.RevisitDue(r); !due.Equal(p.last.Add(3 * time.Minute)) {
		t.Errorf("with a shorter interval due at %v", due)
	}
	if due := ds.RevisitDue(&item.Revisit{Number: 1, Data: r.Data[1:]}); !due.Equal(policy.Never) {
		t.Errorf("damaged data is due at %v", due)
	}
	if p.meta.Due = policy.Never; p.revisitOf(it).Data != nil {
		t.Error("a URL that is not visited again has data")
	}
}

// FuzzReadRevisit reads any data of other nodes. What it accepts can be a link, and is written and read again.
func FuzzReadRevisit(f *testing.F) {
	p, it := aRevisit()
	f.Add(p.revisitOf(it).Data, uint64(1))
	f.Add([]byte{}, uint64(0))
	f.Add([]byte{0}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, number uint64) {
		m, c, ok := readRevisit(&item.Revisit{Number: number, Data: data})
		if !ok {
			return
		}
		if !c.Item.IsNew() || c.Item.Recrawl || c.Host == "" {
			t.Fatalf("accepted %+v", c.Item)
		}
		again := planned{last: m.Fetched, meta: m}
		if m.Due.IsZero() || m.Fetched.Unix() < 1 {
			return
		}
		r := again.revisitOf(&c.Item)
		if _, back, ok := readRevisit(r); r.Data != nil && (!ok || back.Item.URL != c.Item.URL) {
			t.Fatalf("%+v became %+v (%v)", c.Item, back.Item, ok)
		}
	})
}
