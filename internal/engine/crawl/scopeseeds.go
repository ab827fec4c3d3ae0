package crawl

import (
	"context"
	"fmt"
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/statefile"
)

// recallRoots takes the roots of earlier runs into scope.
func (s *scopeSeeds) recallRoots() error {
	return s.file.Each(func(r statefile.SeedEntry) error {
		u, err := weburl.Parse(r.URL)
		if err != nil {
			return fmt.Errorf("%q: %w", r.URL, err)
		}
		if r.Seed {
			u = s.admitSeed(u)
		} else {
			s.scope.AddSeed(u)
		}
		if s.all != nil {
			s.all.Add(u.String())
		}
		return nil
	})
}

// fewRoots is a length of the file in which some seeds more or less, which a run brings again, matter; of a larger one
// they do not.
const fewRoots = 8 << 20

// worthKnowing reports whether it is worth its memory to tell the scope seeds that the crawl has from new ones. length
// is that of the file.
func (s *scopeSeeds) worthKnowing(length int64, shared bool, list *feed) bool {
	return shared || s.cfg.Recrawl.On() ||
		length > 0 && (length < fewRoots || list.src != nil && list.from == 0)
}

// enterRoot keeps a root, if that is news. u is r's URL as the crawl's rules have it. It is called within the
// ledger's gate.
func (s *scopeSeeds) enterRoot(u string, r statefile.SeedEntry) (news bool, err error) {
	if s.all != nil && !s.all.Add(u) {
		return false, nil
	}
	return true, s.file.Add(r)
}

// trusts reports whether secrets may be sent to a URL's server: that of a seed.
func (s *scopeSeeds) trusts(u weburl.URL) bool {
	return s.trusted != nil && s.trusted.Has(u.Origin())
}

// asWritten reports whether the crawl's rules leave the hosts of seeds as the user wrote them.
func (s *scopeSeeds) asWritten() bool { return s.cfg.Canon&weburl.DropWWW == 0 }

// AddSeeds takes seeds in while the engine runs. All are admitted to the scope, as on every node; those are fetched
// whose host this node is asked to take, by it or, if that is another's, by its owner. They are durable when it
// returns, and where the journal is shipped, there. The same seeds may come again.
func (s *Seeding) AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	s.holds.received.Add(1)
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = s.roots.admitSeed(u)
	}
	for from := 0; from < len(seeds); from += maxKept {
		to := min(from+maxKept, len(seeds))
		if s.outgoing.claims != nil {
			s.outgoing.full.await(ctx) // where all go
		}
		if err := s.takeSeeds(seeds[from:to], known[from:to], take, nil); err != nil {
			return err
		}
	}
	return s.ledger.FlushDurable(ctx)
}

// AddRoot admits to the scope what a seed that another node has visited redirects to. The node tells it again when it
// begins anew; it is durable with the next commit.
func (s *Seeding) AddRoot(u weburl.URL) error {
	s.roots.scope.AddSeed(u)
	return s.ledger.Within(func() error {
		_, err := s.roots.enterRoot(u.String(), statefile.SeedEntry{URL: u.String(), Redirect: true})
		return err
	})
}

// addRoot adds a root that a page, or another node, has led to, and tells others of it if a redirect did.
func (s *scopeSeeds) addRoot(it *item.Item) error {
	r := statefile.SeedEntry{URL: it.URL, Redirect: it.Kind == page.Redirect, Seed: it.Kind == page.Seed && s.asWritten()}
	news, err := s.enterRoot(it.URL, r)
	if news && err == nil {
		s.tellRoot(&r)
	}
	return err
}

// divertRoot adds a root that goes to another node.
func (s *scopeSeeds) divertRoot(it *item.Item) {
	root := item.Item{URL: strings.Clone(it.URL), Kind: it.Kind}
	if err := s.addRoot(&root); err != nil {
		s.ledger.Tear(err)
	}
}

func (s *scopeSeeds) tellRoot(r *statefile.SeedEntry) {
	if s.tell == nil || !r.Redirect {
		return
	}
	if u, err := weburl.Parse(r.URL); err == nil {
		s.tell(u)
	}
}

// tellRoots tells what an earlier run may have died before it could.
func (s *scopeSeeds) tellRoots() error {
	if s.tell == nil {
		return nil
	}
	return s.file.Each(func(r statefile.SeedEntry) error {
		s.tellRoot(&r)
		return nil
	})
}
