// Package ui serves the web pages and the REST API for crawls. It shows queries (package inspect) and archived content
// (package lookup) as HTML for people and JSON for programs. Users can also change a crawl with a few actions.
//
// All displayed content comes from strangers. It is escaped, and invisible characters are made visible. An archived
// page is served in a sandbox under its own URL, where nothing runs and nothing is loaded except from the archive.
//
// Requests are bounded in size, time and number. Answers are bounded, too: lists are paged with cursors.
package ui

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/lookup"
	"kumo/internal/base/vfs"
)

// A Crawl is one that is shown.
type Crawl struct {
	Dir    string
	Open   func(context.Context) (*inspect.View, error)
	Wanted func() bool // a crawl waits until nobody reads the folder any more; nil: that cannot be
	// Cluster answers for all nodes, of a crawl that has several; nil otherwise. The server closes it. Without a Dir only
	// the cluster is shown, under Name.
	Cluster inspect.ClusterSource
	Name    string
	Where   string // of whom it is the page, as the crawl's record notes of what is done on it
}

// A Config says what is shown to whom.
type Config struct {
	Crawls      []Crawl
	Batches     []Batch
	Experiments []string // folders with results of kumo sim, or with folders of them
	Hosts       []string // names, besides addresses and localhost, by which the page may be called
	Token       string   // without which nobody is answered; "": everybody is who reaches the address
	Secure      bool     // it is served over TLS
	Log         *slog.Logger
	// what is served in place of all else, to whom the rest of this lets in; nil: the page and the REST
	Only http.Handler
}

// A Server serves crawls. New builds its parts, each of which holds only the others that it uses; Close ends them.
type Server struct {
	crawls  *crawlSet
	handler http.Handler // all parts, behind the guard
	keys    *signer
	end     context.CancelFunc
	log     *slog.Logger
}

const (
	maxListeners = 32  // pages that are kept up to date at once
	maxRequests  = 256 // that are read, wait or are answered at once
	maxAsks      = 32  // questions that are answered at once
)

// New makes a server. The caller closes it.
func New(cfg Config) *Server {
	done, end := context.WithCancel(context.Background())
	several := len(cfg.Crawls)+len(cfg.Batches)+len(cfg.Experiments) > 1
	crawls, batches := newCrawlSet(done, cfg.Crawls, several), newBatchSet(done, cfg.Batches, several)
	out := &responder{log: cfg.Log, json: cfg.Only != nil, many: len(cfg.Crawls) > 1}
	results := &experiments{cfg.Experiments,
		newQueue("A folder of experiments", "folders of experiments", several), out}
	keys, handler := &signer{[]byte(rand.Text())}, cfg.Only
	if handler == nil {
		handler = routes(done, &cfg, crawls, batches, results, keys, out)
	}
	queues := &queues{crawls, batches, results.queue}
	return &Server{crawls: crawls, handler: newGuard(&cfg, queues.of, out).wrap(handler), keys: keys, end: end,
		log: cfg.Log}
}

func newCrawlSet(done context.Context, all []Crawl, several bool) *crawlSet {
	set, views := &crawlSet{byName: map[string]*crawl{}}, &idleList{}
	for _, c := range all {
		name := freeName(cmp.Or(c.Dir, c.Name), func(name string) bool { return set.byName[name] != nil })
		x := &crawl{name: name, dir: c.Dir, open: c.Open, wanted: c.Wanted, archive: lookup.New(vfs.OS, c.Dir), done: done,
			queue: newQueue("The crawl "+name, "its folder "+c.Dir, several), opening: make(chan struct{}, 1), idleViews: views}
		x.hub.beat, x.hub.done, x.hub.look = every, done, x.news
		if c.Cluster != nil {
			x.cluster = newCluster(done, c)
		}
		set.all, set.byName[x.name] = append(set.all, x), x
	}
	return set
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// freeName is a name in URLs for what lies in a folder, by the folder's.
func freeName(dir string, taken func(string) bool) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	name := unsafeInName.ReplaceAllString(filepath.Base(abs), "-")
	if name == "" || name == "." || name == ".." {
		name = "crawl"
	}
	for n, base := 2, name; taken(name); n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	return name
}

// Names are the crawls' names in URLs, in their order.
func (s *Server) Names() (all []string) {
	for _, c := range s.crawls.all {
		all = append(all, c.name)
	}
	return all
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends what is being answered, and lets crawls go.
func (s *Server) Close() {
	s.end()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var wait sync.WaitGroup
		for _, c := range s.crawls.all {
			wait.Go(c.close)
			if c.cluster != nil {
				wait.Go(c.cluster.close)
			}
		}
		wait.Wait()
	}()
	select {
	case <-closed:
	case <-time.After(endPatience): // with one whose disk hangs
	}
}

// A signer makes keys that only this process can make. It does not change.
type signer struct{ secret []byte }

// sign returns the key of a text.
func (k *signer) sign(of string) string {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(of))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

//go:embed static templates
var files embed.FS

// routes makes the parts of a site, and routes requests to them.
func routes(done context.Context, cfg *Config, crawls *crawlSet, batches *batchSet, results *experiments,
	keys *signer, out *responder) http.Handler {
	streams := &eventStreams{done, newSlots(maxListeners, maxListeners)}
	list := newLister(done, crawls)
	archive := &archivedPages{crawls, keys, out, cfg.Secure, cfg.Log}
	front := &frontPages{crawls, batches, len(cfg.Experiments), list, out}
	pages, nodes := &crawlPages{crawls, archive, streams, out}, &clusterViews{crawls, streams, out}
	days, control := &batchPages{batches, out}, &controls{crawls, keys, out, cfg.Log}
	rest := &api{endpointsOf(list, &crawlAPI{crawls}, nodes, &batchAPI{batches}, results), control, out}

	mux := http.NewServeMux()
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // it is linked
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", cached(http.FileServerFS(static))))
	rest.route(mux)
	none := func(*http.Request) top { return out.top(nil, "", "") }
	ofCrawl := func(r *http.Request) top { return out.top(crawls.byName[r.PathValue("crawl")], "", "") }
	out.route(mux, front.views(), none)
	out.route(mux, pages.views(), ofCrawl)
	out.route(mux, nodes.views(), ofCrawl)
	out.route(mux, days.views(), days.head)
	out.route(mux, results.views(), none)
	out.route(mux, map[string]view{"/crawls/{crawl}/act/{do}": control.form}, ofCrawl)
	mux.HandleFunc("POST /crawls/{crawl}/act/{do}", control.submit)
	mux.HandleFunc("GET /archived/{key}/{crawl}", archive.serve)
	mux.HandleFunc("GET /crawls/{crawl}/events", pages.listen)
	mux.HandleFunc("GET /crawls/{crawl}/cluster/events", nodes.listen)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		out.fail(w, r, &problem{http.StatusNotFound, "There is no such page", ""})
	})
	return mux
}

// endpointsOf are those of all parts, as openapi.json describes them.
func endpointsOf(list *lister, crawls *crawlAPI, nodes *clusterViews, batches *batchAPI,
	results *experiments) []endpoint {
	return slices.Concat(list.endpoints(), crawls.endpoints(), nodes.endpoints(), batches.endpoints(), results.endpoints())
}

// cached has files kept by browsers for a while: they change with the program alone.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		next.ServeHTTP(w, r)
	})
}

// A crawl is one that is shown, with what was last heard of it.
type crawl struct {
	name, dir string
	open      func(context.Context) (*inspect.View, error)
	wanted    func() bool
	archive   *lookup.Archive
	cluster   *cluster // nil for a crawl of one node
	hub       hub
	done      context.Context
	queue     *queue
	opening   chan struct{} // whoever opens a view has it
	idleViews *idleList

	mu     sync.Mutex // guards below
	view   *inspect.View
	users  int
	idle   *time.Timer    // closes a view that nobody uses
	lines  *inspect.Lines // of the crawl's files; nil: nothing is remembered
	sought time.Time      // when they were looked for last, by a view that is closed

	listed listItem
	look   sync.Mutex // held by who looks at the status
	last   *Overview
	before []sample // of the last seconds
	hosts  hostList
}

// idleFor is how long a view is kept that nobody uses: as long as one of a crawl that does not run is open, the crawl
// cannot begin.
const idleFor = 3 * time.Second

// linesFor is how long it is remembered where lines of the crawl's files are, after they were looked for last.
const linesFor = time.Minute

// closePatience is for how long is waited until a view has made room.
const closePatience = 100 * time.Millisecond

// use calls f with a view of the crawl. One that has gone is opened anew by who asks next.
func (c *crawl) use(ctx context.Context, f func(*inspect.View) error) error {
	v, err := c.take(ctx)
	if err != nil {
		return err
	}
	err = f(v)
	c.give(v, gone(err))
	return err
}

// take gives the view that there is, or opens one: one at a time does, without the lock, as a disk may hang.
func (c *crawl) take(ctx context.Context) (*inspect.View, error) {
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v, err := c.takeOpen(c.wanted != nil && c.wanted()); v != nil || err != nil {
		return v, err
	}
	v, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done.Err() != nil {
		_ = v.Close() // it was only read
		return nil, inspect.ErrGone
	}
	if c.lines == nil {
		c.lines, c.sought = &inspect.Lines{}, time.Now()
		time.AfterFunc(linesFor, c.forgetLines)
	}
	v.KeepLines(c.lines)
	c.view = v
	c.using()
	return v, nil
}

// takeOpen gives the view that there is. One of a crawl that does not run is closed if that wants its folder: or who
// asks again and again would keep it out.
func (c *crawl) takeOpen(wanted bool) (*inspect.View, error) {
	var old *inspect.View
	defer func() { leave(old) }() // without the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done.Err() != nil {
		return nil, inspect.ErrGone
	}
	if c.view != nil && !c.view.Running() && wanted {
		if c.users > 0 {
			return nil, inspect.ErrGone
		}
		old = c.takeOut()
	}
	if c.view != nil {
		c.using()
	}
	return c.view, nil
}

// using counts who uses the view. The lock is held.
func (c *crawl) using() {
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	c.users++
}

func (c *crawl) give(v *inspect.View, gone bool) {
	if c.giveBack(v, gone) {
		if other := c.idleViews.add(c); other != nil {
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				other.dropIdle()
			}()
			select {
			case <-closed:
			case <-time.After(closePatience): // its disk hangs
			}
		}
	}
}

// giveBack reports whether nobody uses the view any more, and it is kept.
func (c *crawl) giveBack(v *inspect.View, gone bool) bool {
	var old *inspect.View
	defer func() { leave(old) }() // without the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	switch {
	case v != c.view || c.users > 0:
		return false
	case gone || c.done.Err() != nil:
		old = c.takeOut()
		return false
	}
	c.idle = time.AfterFunc(idleFor, c.dropIdle)
	return true
}

// dropIdle closes a view that nobody uses.
func (c *crawl) dropIdle() {
	c.mu.Lock()
	var old *inspect.View
	if c.users == 0 {
		old = c.takeOut()
	}
	c.mu.Unlock()
	leave(old)
}

// forgetLines forgets where lines are if nobody has looked for some for a while, though a view may be open.
func (c *crawl) forgetLines() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil {
		c.seen(c.view)
	}
	again := max(linesFor-time.Since(c.sought), time.Second)
	switch {
	case c.done.Err() != nil:
		c.lines.Forget()
		return
	case time.Since(c.sought) < linesFor || c.users > 0:
	case c.view == nil:
		c.lines.Forget()
		c.lines = nil
		return
	default: // there are others for who uses the view next
		c.lines.Forget()
		c.lines, again = &inspect.Lines{}, linesFor
		c.view.KeepLines(c.lines)
	}
	time.AfterFunc(again, c.forgetLines)
}

// seen notes when a view has looked for lines. The lock is held.
func (c *crawl) seen(v *inspect.View) {
	if at := v.Sought(); at.After(c.sought) {
		c.sought = at
	}
}

// An idleList is the crawls whose views were given back last.
type idleList struct {
	mu  sync.Mutex // guards all
	all []*crawl
}

// maxIdle is how many views are kept that nobody uses, however many crawls there are: each has files and memory.
const maxIdle = 8

// add returns the crawl whose view has to make room, if one has.
func (l *idleList) add(c *crawl) (other *crawl) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(slices.DeleteFunc(l.all, func(o *crawl) bool { return o == c }), c)
	if len(l.all) > maxIdle {
		other, l.all = l.all[0], slices.Delete(l.all, 0, 1)
	}
	return other
}

// takeOut takes the view out, for its taker to leave it when the lock, which is held, is not. It is nil if there is
// none.
func (c *crawl) takeOut() *inspect.View {
	v := c.view
	if v != nil {
		c.seen(v)
	}
	c.view = nil
	return v
}

// leave closes a view that was taken out.
func leave(v *inspect.View) {
	if v != nil {
		_ = v.Close() // it was only read
	}
}

func (c *crawl) close() {
	c.mu.Lock()
	if c.lines != nil {
		c.lines.Forget()
	}
	c.mu.Unlock()
	c.dropIdle()
}
