package crawl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"kumo/internal/entry"

	"kumo/internal/item"
	"kumo/internal/page"
	"kumo/internal/store"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// A root takes its host into scope: a seed, or what a seed redirects to. In a crawl of several nodes each has all roots
// in its scope, those too that others fetch: they come with AddSeeds and AddRoot.
type root struct {
	url      string
	seed     bool // the user named it, as it is written here: it is trusted, and may be at a private address
	redirect bool // a redirect led there: other nodes are told
}

// rootsName is the file's name in the crawl's folder.
var rootsName = filepath.Join("state", "roots")

// Roots are the crawl's roots in a file, in the order in which they came. There may be millions: memory has hashes of
// them, and a checkpoint names the file's length alone. It is a store like others, so that the file agrees with the
// journal after a crash.
type Roots struct {
	*store.Logs
	disk vfs.FS
	dir  string
}

var _ store.Store = (*Roots)(nil)

// OpenRoots opens the file of the crawl in dir, cut back to marks.
func OpenRoots(disk vfs.FS, dir string, marks []store.Mark) (*Roots, error) {
	if err := disk.MkdirAll(filepath.Join(dir, "state")); err != nil {
		return nil, err
	}
	logs, err := store.OpenLogs(disk, dir, marks, rootsName)
	if err != nil {
		return nil, err
	}
	return &Roots{logs, disk, dir}, nil
}

// Put does nothing: a root is known before it is fetched.
func (r *Roots) Put(*page.Record) error { return nil }

// PutSkip does nothing: a root that is left out stays one.
func (r *Roots) PutSkip(*page.Skip) error { return nil }

// add keeps a root. A nil Roots keeps nothing.
func (r *Roots) add(b root) error {
	if r == nil {
		return nil
	}
	var body entry.Encoder
	body.Flags(b.seed, b.redirect)
	body.Writer = append(body.Writer, b.url...)
	body.Writer = seal(body.Writer)
	return r.Append(0, append(binary.AppendUvarint(nil, uint64(len(body.Writer))), body.Writer...))
}

// each calls f with all roots so far.
func (r *Roots) each(f func(root) error) error {
	if r == nil {
		return nil
	}
	marks, err := r.Mark() // hands all to the operating system
	if err != nil {
		return err
	}
	return readRoots(r.disk, filepath.Join(r.dir, rootsName), marks[0].Length, f)
}

func readRoots(disk vfs.FS, name string, length int64, f func(root) error) error {
	if length == 0 {
		return nil
	}
	src, err := disk.Open(name)
	if err != nil {
		return fmt.Errorf("read the crawl's seeds: %w", err)
	}
	defer func() { _ = src.Close() }() // it is only read
	var read int64
	err = readFrames(io.LimitReader(src, length), func(body []byte, end int64) error {
		read = end
		r, err := parseRoot(body)
		if err != nil {
			return err
		}
		return f(r)
	})
	if err == nil && read != length || errors.Is(err, entry.ErrShort) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) {
		err = ErrRoots
	}
	if err != nil {
		return fmt.Errorf("read the crawl's seeds from %s: %w", name, err)
	}
	return nil
}

// parseRoot reads the body of an entry.
func parseRoot(body []byte) (root, error) {
	body, whole := unseal(body)
	if !whole {
		return root{}, ErrRoots
	}
	return root{url: string(body[1:]), seed: body[0]&1 != 0, redirect: body[0]&2 != 0}, nil
}

// ErrRoots is a file of roots that is damaged.
var ErrRoots = errors.New("it is not as it was written")

// recallRoots takes the roots of earlier runs into scope.
func (e *Engine) recallRoots() error {
	return e.roots.file.each(func(r root) error {
		u, err := weburl.Parse(r.url)
		if err != nil {
			return fmt.Errorf("%q: %w", r.url, err)
		}
		if r.seed {
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
	length, _ := store.Find(e.files.marks, rootsName)
	if e.peers.router != nil || e.cfg.Recrawl.On() || length > 0 && (length < fewRoots || e.roots.feed.src != nil &&
		e.roots.feed.from == 0) {
		e.roots.all = weburl.NewSet()
	}
}

// enterRoot keeps a root, if that is news. u is r's URL as the crawl's rules have it. It is called within the
// ledger's gate.
func (e *Engine) enterRoot(u string, r root) (news bool, err error) {
	if e.roots.all != nil && !e.roots.all.Add(u) {
		return false, nil
	}
	return true, e.roots.file.add(r)
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
		_, err := e.enterRoot(u.String(), root{url: u.String(), redirect: true})
		return err
	})
}

// addRoot adds a root that a page, or another node, has led to, and tells others of it if a redirect did.
func (e *Engine) addRoot(it *item.Item) error {
	r := root{url: it.URL, redirect: it.Kind == page.Redirect, seed: it.Kind == page.Seed && e.asWritten()}
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

func (e *Engine) tellRoot(r *root) {
	if e.roots.tell == nil || !r.redirect {
		return
	}
	if u, err := weburl.Parse(r.url); err == nil {
		e.roots.tell(u)
	}
}

// tellRoots tells what an earlier run may have died before it could.
func (e *Engine) tellRoots() error {
	if e.roots.tell == nil {
		return nil
	}
	return e.roots.file.each(func(r root) error {
		e.tellRoot(&r)
		return nil
	})
}
