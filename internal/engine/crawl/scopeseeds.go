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

// load reads the scope seeds of earlier runs into the scope.
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

// smallSeedFile is the size up to which the file of scope seeds should not grow by seeds that each run adds again. In a
// larger file, a few duplicates do not matter.
const smallSeedFile = 8 << 20

// needsSet reports whether the set of known scope seeds, which detects new ones, is worth its memory. length is the
// size of the file.
func (s *scopeSeeds) needsSet(length int64, shared bool, list *seedFeed) bool {
	return shared || s.cfg.Recrawl.Enabled() ||
		length > 0 && (length < smallSeedFile || list.src != nil && list.from == 0)
}

// record writes a scope seed to the file if it is new, and reports whether it is. u is its URL after the crawl's
// rewriting rules. It is called within the ledger's gate.
func (s *scopeSeeds) record(u string, r statefile.SeedEntry) (news bool, err error) {
	if s.all != nil && !s.all.Add(u) {
		return false, nil
	}
	return true, s.file.Add(r)
}

// trusts reports whether secrets may be sent to a URL's server: only to those of seeds.
func (s *scopeSeeds) trusts(u weburl.URL) bool {
	return s.trusted != nil && s.trusted.Has(u.Origin())
}

// asWritten reports whether the crawl's rewriting rules leave the seeds' hosts as the user wrote them.
func (s *scopeSeeds) asWritten() bool { return s.cfg.Canon&weburl.DropWWW == 0 }

// add adds a scope seed that a page, or another node, has found. If it is the target of a redirect, other nodes are
// told.
func (s *scopeSeeds) add(it *item.Item) error {
	r := statefile.SeedEntry{URL: it.URL, Redirect: it.Kind == page.Redirect, Seed: it.Kind == page.Seed && s.asWritten()}
	news, err := s.record(it.URL, r)
	if news && err == nil {
		s.announceRedirect(&r)
	}
	return err
}

// addForeign adds a scope seed whose host is another node's.
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

// announceRedirects announces all redirects again: an earlier run may have crashed before it could.
func (s *scopeSeeds) announceRedirects() error {
	if s.announce == nil {
		return nil
	}
	return s.file.Each(func(r statefile.SeedEntry) error {
		s.announceRedirect(&r)
		return nil
	})
}

// scopeSeeds are the URLs that define the scope: seeds, and the targets of their redirects. Secrets may be sent to the
// seeds' origins only.
type scopeSeeds struct {
	cfg      *Config
	file     *statefile.ScopeSeeds
	all      *weburl.Set      // after rewriting; nil if the set is not needed
	trusted  *weburl.Set      // origins of seeds; nil if there are no secrets
	announce func(weburl.URL) // tells other nodes of a new redirect target; may be nil

	scope   *weburl.Scope
	outages *outageMonitor
	origins *origins
	fetcher visit.Fetcher
	ledger  *ledger.Ledger
}

// admit adds a URL to the scope. A seed, which the user has named, is trusted and may have a private address.
func (s *scopeSeeds) admit(u weburl.URL, seed bool) {
	s.scope.AddSeed(u)
	if !seed {
		return
	}
	s.outages.addSeed(u.Origin(), s.origins.Hash(u.Origin()))
	if s.trusted != nil {
		s.trusted.Add(u.Origin())
		if secure, err := weburl.Parse("https://" + u.Host()); err == nil {
			s.trusted.Add(secure.Origin()) // for a redirect to https; never the other way round
		}
	}
	s.fetcher.Allow(u.Host())
}

// admitSeed adds a seed to the scope, and returns it after the crawl's rewriting rules.
func (s *scopeSeeds) admitSeed(u weburl.URL) weburl.URL {
	known := s.cfg.Canon.Apply(u)
	s.admit(u, true)
	s.scope.AddSeed(known) // not trusted: it may be another host than the user named
	return known
}

// admitAll adds the scope seeds among links from other nodes to the scope.
func (s *scopeSeeds) admitAll(b *batch) {
	for i := range b.cands {
		if it := &b.cands[i].Item; it.ScopeSeed && b.cands[i].Rule == "" {
			if u, err := weburl.Parse(strings.Clone(it.URL)); err == nil {
				s.admit(u, it.Kind == page.Seed && s.asWritten())
			}
		}
	}
}
