package exchange

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/entry"
	"kumo/internal/state/ledger"
)

// newOutbox returns an outbox with links of an earlier process.
func newOutbox(left ...string) *Outbox {
	links := entry.Links{}
	for i, url := range left {
		var enc entry.Encoder
		enc.Candidate(linkTo(url))
		links[uint64(3*i+1)] = string(enc.Writer)
	}
	return New(Config{MaxBytes: 1 << 20, Hold: func(bool) {}, Pages: true,
		Ledger: ledger.New(ledger.Config{Begin: entry.AppendTime, Now: time.Now})}, links)
}

func linkTo(url string) *entry.Candidate {
	return &entry.Candidate{Host: item.HostOf(url), Item: item.Item{URL: url}}
}

// take marks all links but some as taken.
func take(t *testing.T, o *Outbox, but ...string) {
	t.Helper()
	now := time.Now()
	for _, b := range o.Batches(now, func(host string) (strategy.Node, bool) { return strategy.Node(host), true }) {
		var all []string
		if err := Read(b.Data, func(c entry.Candidate, _ []byte) { all = append(all, c.Item.URL) }); err != nil {
			t.Fatal(err)
		}
		var refused []int
		for i, url := range all {
			if slices.Contains(but, url) {
				refused = append(refused, i)
			}
		}
		o.Answered(b.To, b.Number, refused, now)
	}
}

// A book has the names of pages that are done.
type book []string

func (b *book) page(name string) *Page { return NewPage(func() { *b = append(*b, name) }) }

func (b *book) want(t *testing.T, names ...string) {
	t.Helper()
	if slices.Sort(*b); !slices.Equal(*b, names) {
		t.Errorf("%q are over, want %q", *b, names)
	}
}

// TestAPageIsOverWhenItsLinksAreTaken: a page is done when it is closed and its last link is taken. A link on two pages
// counts for both; links taken before count for none.
func TestAPageIsOverWhenItsLinksAreTaken(t *testing.T) {
	o, over := newOutbox(), book{}
	one, two, three := over.page("one"), over.page("two"), over.page("three")
	var enc entry.Encoder
	for _, url := range []string{"http://a/", "http://b/", "http://a/"} {
		o.Put(&enc, linkTo(url), one)
	}
	o.Put(&enc, linkTo("http://a/"), two)
	o.Put(&enc, linkTo("http://c/"), nil)
	if links, _ := o.Size(); links != 3 || !one.HasLinks() || !two.HasLinks() || three.HasLinks() {
		t.Errorf("%d links; %v, %v, %v", links, one.HasLinks(), two.HasLinks(), three.HasLinks())
	}
	three.Close()
	two.Close()
	over.want(t, "three")
	take(t, o, "http://b/")
	over.want(t, "three", "two")
	one.Close()
	over.want(t, "three", "two")
	o.Answered("b", 0, nil, time.Now()) // an answer to no batch
	for _, b := range o.Batches(time.Now().Add(time.Hour), func(string) (strategy.Node, bool) { return "else", true }) {
		o.Answered(b.To, b.Number, nil, time.Now())
	}
	over.want(t, "one", "three", "two")
	four := over.page("four")
	o.Put(&enc, linkTo("http://a/"), four)
	four.Close()
	over.want(t, "four", "one", "three", "two")
	if len(o.pages.byLink) > 0 || !o.Empty() {
		t.Errorf("%v are kept of pages", o.pages.byLink)
	}
}

// TestPagesHoldWorkersBack: very many pages that wait for one link make workers wait until it is taken.
func TestPagesHoldWorkersBack(t *testing.T) {
	o, over, held := newOutbox(), book{}, false
	o.cfg.MaxBytes, o.cfg.Hold = 10<<10, func(hold bool) { held = hold }
	var enc entry.Encoder
	for range 100 {
		if held {
			break
		}
		p := over.page("page")
		o.Put(&enc, linkTo("http://a/"), p)
		p.Close()
	}
	if n := len(o.pages.byLink[1]); !held || n < 50 || n == 100 {
		t.Errorf("held back: %v, with %d pages", held, n)
	}
	n := len(o.pages.byLink[1])
	take(t, o)
	if held || len(over) != n || o.pages.bytes() != 0 {
		t.Errorf("held back: %v, %d pages are over, %d bytes", held, len(over), o.pages.bytes())
	}
}

// TestEarlierLinks: links of an earlier process are counted until they are taken, whatever else is added.
func TestEarlierLinks(t *testing.T) {
	o, over := newOutbox("http://a/1", "http://b/1", "http://b/2"), book{}
	var enc entry.Encoder
	p := over.page("page")
	o.Put(&enc, linkTo("http://a/1"), p) // again, as it is not known to be in the outbox
	p.Close()
	if n := o.Earlier(); n != 3 {
		t.Errorf("%d wait", n)
	}
	take(t, o, "http://b/1", "http://a/1")
	if n := o.Earlier(); n != 2 {
		t.Errorf("%d wait", n)
	}
	over.want(t)
	for _, b := range o.Batches(time.Now().Add(time.Hour), func(string) (strategy.Node, bool) { return "else", true }) {
		o.Answered(b.To, b.Number, nil, time.Now())
	}
	if n := o.Earlier(); n != 0 || !o.Empty() {
		t.Errorf("%d wait", n)
	}
	over.want(t, "page")
}

// TestHas: a link is found by its URL alone.
func TestHas(t *testing.T) {
	o := newOutbox("http://a/1")
	var enc entry.Encoder
	o.Put(&enc, &entry.Candidate{Host: "b", Item: item.Item{URL: "http://b/12", From: "http://from/"}}, nil)
	for url, want := range map[string]bool{"http://a/1": true, "http://b/12": true, "http://b/1": false,
		"http://from/": false} {
		if o.Has(url) != want {
			t.Errorf("%s waits: %v", url, !want)
		}
	}
}
