package meshnode

import (
	"testing"

	"kumo/internal/item"
	"kumo/internal/weburl"
)

// A keeper skips what it cannot read of a list, or what no other node would take, and offers the rest.
func TestBadItemsOfALostNode(t *testing.T) {
	e := newEngine(&web{})
	n := &Node{cfg: Config{Places: Places{Whole: func(it *item.Item) bool {
		u, err := weburl.Parse(it.URL)
		return err == nil && u.String() == it.URL
	}}}}
	var attached Engine = e
	n.attached.Store(&attached)
	body := func(url string) []byte { return item.AppendBody(nil, "", &item.Item{URL: url}) }
	newer := body("http://h3.test/1")
	newer[0]++
	var list []byte
	for _, b := range [][]byte{body("http://h1.test/1"), newer, []byte("x"), body("HTTP://h3.test/../1"),
		body("http://h2.test/1")} {
		list = appendFrame(list, b)
	}
	all, skipped, err := n.offerAgain(t.Context(), list)
	if all != 2 || skipped != 3 || err != nil {
		t.Errorf("%d items are offered, %d skipped, %v; want 2, 3, and no error", all, skipped, err)
	}
	if links, _ := e.Outbox(); links != 2 {
		t.Errorf("%d links are in the outbox, want 2", links)
	}
}
