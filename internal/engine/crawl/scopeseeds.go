package crawl

import (
	"context"
	"fmt"
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// recallRoots takes the roots of earlier runs into scope.
func (e *Engine) recallRoots() error {
	return e.roots.file.Each(func(r statefile.SeedEntry) error {
		u, err := weburl.Parse(r.URL)
		if err != nil {
			return fmt.Errorf("%q: %w", r.URL, err)
		}
		if r.Seed {
			u = e.admitSeed(u)
		} else {
			e.rules.Scope.AddSeed(u)
		}
		if e.roots.all != nil {
			e.roots.all.Add(u.String())
		}
		return nil
	})
}

// fewRoots is a length of the file in which some seeds more or less, which a run brings again, matter; of a larger one
// they do not.
const fewRoots = 8 << 20

// knowRoots has the engine keep apart the roots that it has from those that come again, where that is worth its memory.
func (e *Engine) knowRoots() {
	length, _ := store.Find(e.files.marks, statefile.ScopeSeedsName)
	if e.peers.router != nil || e.cfg.Recrawl.On() || length > 0 && (length < fewRoots || e.roots.feed.src != nil &&
		e.roots.feed.from == 0) {
		e.roots.all = weburl.NewSet()
	}
}

// enterRoot keeps a root, if that is news. u is r's URL as the crawl's rules have it. It is called within the
// ledger's gate.
func (e *Engine) enterRoot(u string, r statefile.SeedEntry) (news bool, err error) {
	if e.roots.all != nil && !e.roots.all.Add(u) {
		return false, nil
	}
	return true, e.roots.file.Add(r)
}

// trusts reports whether secrets may be sent to a URL's server: that of a seed.
func (e *Engine) trusts(u weburl.URL) bool {
	return e.roots.trusted != nil && e.roots.trusted.Has(u.Origin())
}

// asWritten reports whether the crawl's rules leave the hosts of seeds as the user wrote them.
func (e *Engine) asWritten() bool { return e.cfg.Canon&weburl.DropWWW == 0 }

// AddSeeds takes seeds in while the engine runs. All are admitted to the scope, as on every node; those are fetched
// whose host this node is asked to take, by it or, if that is another's, by its owner. They are durable when it
// returns, and where the journal is shipped, there. The same seeds may come again.
func (e *Engine) AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	e.peers.received.Add(1)
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = e.admitSeed(u)
	}
	for from := 0; from < len(seeds); from += maxKept {
		to := min(from+maxKept, len(seeds))
		if e.claims != nil {
			e.peers.full.await(ctx) // where all go
		}
		if err := e.takeSeeds(seeds[from:to], known[from:to], take, nil); err != nil {
			return err
		}
	}
	return e.ledger.FlushDurable(ctx)
}

// AddRoot admits to the scope what a seed that another node has visited redirects to. The node tells it again when it
// begins anew; it is durable with the next commit.
func (e *Engine) AddRoot(u weburl.URL) error {
	e.rules.Scope.AddSeed(u)
	return e.ledger.Within(func() error {
		_, err := e.enterRoot(u.String(), statefile.SeedEntry{URL: u.String(), Redirect: true})
		return err
	})
}

// addRoot adds a root that a page, or another node, has led to, and tells others of it if a redirect did.
func (e *Engine) addRoot(it *item.Item) error {
	r := statefile.SeedEntry{URL: it.URL, Redirect: it.Kind == page.Redirect, Seed: it.Kind == page.Seed && e.asWritten()}
	news, err := e.enterRoot(it.URL, r)
	if news && err == nil {
		e.tellRoot(&r)
	}
	return err
}

// divertRoot adds a root that goes to another node.
func (e *Engine) divertRoot(it *item.Item) {
	root := item.Item{URL: strings.Clone(it.URL), Kind: it.Kind}
	if err := e.addRoot(&root); err != nil {
		e.ledger.Tear(err)
	}
}

func (e *Engine) tellRoot(r *statefile.SeedEntry) {
	if e.roots.tell == nil || !r.Redirect {
		return
	}
	if u, err := weburl.Parse(r.URL); err == nil {
		e.roots.tell(u)
	}
}

// tellRoots tells what an earlier run may have died before it could.
func (e *Engine) tellRoots() error {
	if e.roots.tell == nil {
		return nil
	}
	return e.roots.file.Each(func(r statefile.SeedEntry) error {
		e.tellRoot(&r)
		return nil
	})
}
