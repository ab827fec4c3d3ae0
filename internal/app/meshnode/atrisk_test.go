package meshnode

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member/mesh"
)

// A keeper skips unreadable and invalid entries of a list, and offers the rest.
func TestBadItemsOfALostNode(t *testing.T) {
	e := newEngine(&web{})
	k := &atRisk{engine: &engineRef{}, places: Places{Valid: func(it *item.Item) bool {
		u, err := weburl.Parse(it.URL)
		return err == nil && u.String() == it.URL
	}}}
	var attached Engine = e
	k.engine.p.Store(&attached)
	body := func(url string) []byte { return item.AppendBody(nil, "", &item.Item{URL: url}) }
	newer := body("http://h3.test/1")
	newer[0]++
	var list []byte
	for _, b := range [][]byte{body("http://h1.test/1"), newer, []byte("x"), body("HTTP://h3.test/../1"),
		body("http://h2.test/1")} {
		list = appendFrame(list, b)
	}
	all, skipped, err := k.reoffer(t.Context(), list)
	if all != 2 || skipped != 3 || err != nil {
		t.Errorf("%d items are offered, %d skipped, %v; want 2, 3, and no error", all, skipped, err)
	}
	if links, _ := e.Outbox(); links != 2 {
		t.Errorf("%d links are in the outbox, want 2", links)
	}
}

// A page dispatched again is only reported as done when the keepers know it, even if it is already in a list.
func TestAPageIsNotedWhenKeepersKnowIt(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, _, err := openRisks(vfs.OS, dir, "a~1")
		if err != nil {
			t.Fatal(err)
		}
		k := &atRisk{lists: r, inbox: newInbox(), places: Places{Own: "file:///place",
			Has: func(string) bool { return false }}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.run(ctx)
		p := AtRisk{Item: item.Item{URL: "http://h.test/1"}, File: "warc/1.warc"}
		done := make(chan error, 1)
		go func() { done <- k.add(ctx, []AtRisk{p}) }()
		synctest.Wait()
		if size, _ := r.size(p.File); r.isListed(&p.Item) || size == 0 {
			t.Errorf("noted: %v, %d bytes", r.isListed(&p.Item), size)
		}
		k.do(mesh.Safe{ID: 1})
		if err := <-done; err != nil || !r.isListed(&p.Item) {
			t.Errorf("%v, noted: %v", err, r.isListed(&p.Item))
		}
	})
}

// A location that never answers is retried, but only for the configured time.
func TestAPlaceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, begun := 0, time.Now()
		k := &atRisk{log: slog.New(slog.DiscardHandler)}
		k.places.Timeout = 10 * time.Minute
		k.places.ReadPlace = func(ctx context.Context, _ string) (func(string) bool, error) {
			asked++
			<-ctx.Done()
			return nil, errors.New("no answer")
		}
		has, err := k.readPlace(t.Context(), "b~1", "s3://place")
		if took := time.Since(begun); err != nil || has("f") || asked < 3 || took > 10*time.Minute+placeTimeout {
			t.Errorf("asked %d times in %v: %v", asked, took, err)
		}
	})
}
