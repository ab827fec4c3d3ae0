package crawl

import (
	"context"
	"slices"
	"strings"
	"sync"

	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/weburl"
)

// A root takes its host into scope. In a crawl of several nodes each has all roots in its scope, those too that others fetch: they
// come with AddSeeds and AddRoot.

// trust is whom secrets may be sent to: the hosts of seeds.
type trust struct {
	mu      sync.RWMutex
	origins map[string]bool
}

func (t *trust) add(origins ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.origins == nil {
		t.origins = map[string]bool{}
	}
	for _, o := range origins {
		t.origins[o] = true
	}
}

func (t *trust) has(origin string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.origins[origin]
}

// asWritten reports whether the crawl's rules leave the hosts of seeds as the user wrote them.
func (e *Engine) asWritten() bool { return e.cfg.Canon&weburl.DropWWW == 0 }

// AddSeeds takes seeds in while the engine runs. All are admitted to the scope, as on every node; those are fetched whose host this
// node is asked to take, by it or, if that is another's, by its owner. They are durable when it returns, and where the journal is
// shipped, there. The same seeds may come again.
func (e *Engine) AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	e.came.Add(1)
	roots, mine := make([]frontier.Item, len(seeds)), make([]weburl.URL, 0, len(seeds))
	for i, u := range seeds {
		known := e.admitSeed(u)
		roots[i] = frontier.Item{URL: known.String(), Seed: known.String(), Kind: page.Seed, Root: true}
		if take(known.Host()) {
			mine = append(mine, known)
		}
	}
	if err := e.enterRoots(roots...); err != nil {
		return err
	}
	if err := e.takeSeeds(mine); err != nil {
		return err
	}
	return e.Land(ctx)
}

// AddRoot admits to the scope what a seed that another node has visited redirects to. The node tells it again when it begins anew; it
// is durable with the next commit.
func (e *Engine) AddRoot(u weburl.URL) error {
	e.scope.AddSeed(u)
	return e.enterRoots(frontier.Item{URL: u.String(), Kind: page.Redirect, Root: true})
}

func (e *Engine) enterRoots(roots ...frontier.Item) error {
	return e.committer.within(func() error {
		var enc encoder
		for i := range roots {
			if e.isNewRoot(&roots[i]) {
				enc.root(&roots[i])
			}
		}
		e.committer.enqueue(enc.b)
		return nil
	})
}

// isNewRoot adds a root that may be known already. Who asks once has the others of the engine asked for as well.
func (e *Engine) isNewRoot(it *frontier.Item) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isRoot == nil {
		e.isRoot = make(map[string]bool, len(e.roots))
		for i := range e.roots {
			e.isRoot[e.roots[i].URL] = true
		}
	}
	if e.isRoot[it.URL] {
		return false
	}
	e.isRoot[it.URL] = true
	e.roots = append(e.roots, *it)
	return true
}

// addRoot adds a root that is found, and says so if a redirect led to it.
func (e *Engine) addRoot(it frontier.Item) {
	e.mu.Lock()
	if e.isRoot == nil || !e.isRoot[it.URL] {
		e.roots = append(e.roots, it)
	}
	if e.isRoot != nil {
		e.isRoot[it.URL] = true
	}
	e.mu.Unlock()
	e.tellRoot(&it)
}

// divertRoot adds a root that goes to another node.
func (e *Engine) divertRoot(enc *encoder, it frontier.Item) {
	it.URL, it.From, it.Seed, it.Path = strings.Clone(it.URL), "", strings.Clone(it.Seed), ""
	if e.isNewRoot(&it) {
		enc.root(&it)
		e.tellRoot(&it)
	}
}

func (e *Engine) tellRoot(it *frontier.Item) {
	if e.newRoot == nil || it.Kind != page.Redirect {
		return
	}
	if u, err := weburl.Parse(it.URL); err == nil {
		e.newRoot(u)
	}
}

// tellRoots tells what an earlier run may have died before it could.
func (e *Engine) tellRoots() {
	e.mu.Lock()
	roots := slices.Clone(e.roots)
	e.mu.Unlock()
	for i := range roots {
		e.tellRoot(&roots[i])
	}
}

// root is told of a root, once or more often.
func (s *State) root(it frontier.Item) {
	if s.behind {
		return
	}
	if s.isRoot == nil {
		s.isRoot = make(map[string]bool, len(s.roots))
		for i := range s.roots {
			s.isRoot[s.roots[i].URL] = true
		}
	}
	if !s.isRoot[it.URL] {
		s.isRoot[it.URL] = true
		s.roots = append(s.roots, it)
	}
}
