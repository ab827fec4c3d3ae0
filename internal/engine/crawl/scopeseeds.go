package crawl

import (
	"fmt"
	"strings"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/visit"
	"kumo/internal/state/ledger"
	"kumo/internal/state/statefile"
)

// load takes the roots of earlier runs into scope.
func (s *scopeSeeds) load() error {
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

// smallSeedFile is a length of the file in which some seeds more or less, which a run brings again, matter; of a larger one
// they do not.
const smallSeedFile = 8 << 20

// needsSet reports whether it is worth its memory to tell the scope seeds that the crawl has from new ones. length
// is that of the file.
func (s *scopeSeeds) needsSet(length int64, shared bool, list *seedFeed) bool {
	return shared || s.cfg.Recrawl.Enabled() ||
		length > 0 && (length < smallSeedFile || list.src != nil && list.from == 0)
}

// record keeps a root, if that is news. u is r's URL as the crawl's rules have it. It is called within the
// ledger's gate.
func (s *scopeSeeds) record(u string, r statefile.SeedEntry) (news bool, err error) {
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

// add adds a root that a page, or another node, has led to, and tells others of it if a redirect did.
func (s *scopeSeeds) add(it *item.Item) error {
	r := statefile.SeedEntry{URL: it.URL, Redirect: it.Kind == page.Redirect, Seed: it.Kind == page.Seed && s.asWritten()}
	news, err := s.record(it.URL, r)
	if news && err == nil {
		s.announceRedirect(&r)
	}
	return err
}

// addForeign adds a root that goes to another node.
func (s *scopeSeeds) addForeign(it *item.Item) {
	root := item.Item{URL: strings.Clone(it.URL), Kind: it.Kind}
	if err := s.add(&root); err != nil {
		s.ledger.MarkTorn(err)
	}
}

func (s *scopeSeeds) announceRedirect(r *statefile.SeedEntry) {
	if s.announce == nil || !r.Redirect {
		return
	}
	if u, err := weburl.Parse(r.URL); err == nil {
		s.announce(u)
	}
}

// announceRedirects tells other nodes again of all redirects: an earlier run may have died before it could.
func (s *scopeSeeds) announceRedirects() error {
	if s.announce == nil {
		return nil
	}
	return s.file.Each(func(r statefile.SeedEntry) error {
		s.announceRedirect(&r)
		return nil
	})
}

// scopeSeeds are the URLs from which the scope follows: seeds, and where they redirect to. Secrets may be sent to the
// seeds' origins only.
type scopeSeeds struct {
	cfg      *Config
	file     *statefile.ScopeSeeds
	all      *weburl.Set      // those, by the crawl's rules; nil where all are new and nobody asks
	trusted  *weburl.Set      // origins of seeds; nil if there are no secrets
	announce func(weburl.URL) // tells other nodes of a new one; may be nil

	scope   *weburl.Scope
	outages *outageMonitor
	origins *origins
	fetcher visit.Fetcher
	ledger  *ledger.Ledger
}

// admit takes a root into scope. A seed, which the user named, is trusted and may be at a private address.
func (s *scopeSeeds) admit(u weburl.URL, seed bool) {
	s.scope.AddSeed(u)
	if !seed {
		return
	}
	s.outages.addSeed(u.Origin(), s.origins.Hash(u.Origin()))
	if s.trusted != nil {
		s.trusted.Add(u.Origin())
		if secure, err := weburl.Parse("https://" + u.Host()); err == nil {
			s.trusted.Add(secure.Origin()) // where the seed's host leads to TLS; never the other way round
		}
	}
	s.fetcher.Allow(u.Host())
}

// admitSeed takes a seed into scope, and returns it as the crawl's rules have it.
func (s *scopeSeeds) admitSeed(u weburl.URL) weburl.URL {
	known := s.cfg.Canon.Apply(u)
	s.admit(u, true)
	s.scope.AddSeed(known) // without the trust: it may be another host than the user named
	return known
}

// admitAll takes the seeds of other nodes, and where such have redirected to, into scope.
func (s *scopeSeeds) admitAll(b *batch) {
	for i := range b.cands {
		if it := &b.cands[i].Item; it.ScopeSeed && b.cands[i].Rule == "" {
			if u, err := weburl.Parse(strings.Clone(it.URL)); err == nil {
				s.admit(u, it.Kind == page.Seed && s.asWritten())
			}
		}
	}
}
