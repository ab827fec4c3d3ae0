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
	"kumo/internal/content/document"
)

// A Crawl is a crawl to show.
type Crawl struct {
	Dir          string
	Open         func(context.Context) (*inspect.View, error)
	FolderWanted func() bool // reports whether a crawl waits for its folder to be released; may be nil
	// Cluster queries all nodes of a crawl that has several; nil otherwise. The server closes it. Without a Dir, only
	// the cluster is shown, under Name.
	Cluster  inspect.ClusterSource
	Name     string
	Location string // whose page it is, for the crawl's record of actions
	Audit    AuditFunc
	Export   ExportFunc // both may be nil
}

// A Config defines the data to show, and who may see it.
type Config struct {
	Crawls      []Crawl
	Batches     []Batch
	Experiments []string // folders with results of kumo sim, or parents of such folders
	Hosts       []string // allowed host names, in addition to addresses and localhost
	Token       string   // required in requests; "": no token is needed
	Secure      bool     // served over TLS
	Log         *slog.Logger
	// Only, unless nil, is served instead of the pages and the REST API, with the same access checks.
	Only http.Handler
	// Documents reads PDFs, office documents and e-books, to show their text; nil: they are not shown.
	Documents document.Reader
	// Starter starts crawls for users of the page; nil: they cannot start any.
	Starter Starter
}

// A Server serves crawls. New creates its parts; Close ends them. Each part holds only the others that it uses.
type Server struct {
	crawls  *crawlSet
	handler http.Handler // all parts, behind the guard
	audits  *audits
	keys    *signer
	end     context.CancelFunc
	log     *slog.Logger
}

const (
	maxListeners = 32  // concurrent event streams
	maxRequests  = 256 // concurrent requests, including waiting ones
	maxAnswering = 32  // concurrent requests that are being answered
)

// New creates a server. The caller closes it.
func New(cfg Config) *Server {
	done, end := context.WithCancel(context.Background())
	several := len(cfg.Crawls)+len(cfg.Batches)+len(cfg.Experiments) > 1 || cfg.Starter != nil
	crawls, batches := newCrawlSet(done, &cfg, several), newBatchSet(done, cfg.Batches, several)
	out := &responder{log: cfg.Log, json: cfg.Only != nil, many: len(cfg.Crawls) > 1, starts: cfg.Starter != nil}
	results := &experiments{cfg.Experiments,
		newQueue("A folder of experiments", "folders of experiments", several), out}
	keys, handler, audits := &signer{[]byte(rand.Text())}, cfg.Only, newAudits(done)
	if handler == nil {
		handler = routes(done, &cfg, crawls, batches, results, audits, keys, out)
	}
	guard := &guard{cfg: &cfg, queueOf: queuesOf(crawls, batches, results.queue), out: out,
		requests: make(chan struct{}, maxRequests), answering: make(chan struct{}, maxAnswering)}
	return &Server{crawls: crawls, handler: guard.wrap(handler), audits: audits, keys: keys, end: end,
		log: cfg.Log}
}

func newCrawlSet(done context.Context, cfg *Config, several bool) *crawlSet {
	set := &crawlSet{done: done, views: &idleList{}, byName: map[string]*crawl{}, several: several,
		documents: cfg.Documents}
	for _, c := range cfg.Crawls {
		set.add(c)
	}
	return set
}

// add adds a crawl.
func (set *crawlSet) add(c Crawl) *crawl {
	set.mu.Lock()
	defer set.mu.Unlock()
	name := freeName(cmp.Or(c.Dir, c.Name), func(name string) bool { return set.byName[name] != nil })
	view := &sharedView{open: c.Open, wanted: c.FolderWanted, done: set.done, idleList: set.views,
		opening: make(chan struct{}, 1)}
	q := newQueue("The crawl "+name, "its folder "+c.Dir, set.several)
	x := &crawl{name: name, dir: c.Dir, archive: lookup.New(vfs.OS, c.Dir, set.documents), queue: q, view: view,
		status: &statusCache{name: name, view: view}, hosts: &hostRanking{view: view, queue: q, done: set.done},
		audit: c.Audit, export: c.Export}
	x.hub.interval, x.hub.done, x.hub.poll = hubInterval, set.done, x.event
	if c.Cluster != nil {
		x.cluster = newCluster(set.done, c)
	}
	set.all, set.byName[x.name] = append(set.all, x), x
	return x
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// freeName returns an unused name for URLs, derived from the name of a folder.
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

// Names returns the crawls' names in URLs, in order.
func (s *Server) Names() (all []string) {
	for _, c := range s.crawls.list() {
		all = append(all, c.name)
	}
	return all
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close cancels the requests in progress and closes the crawls.
func (s *Server) Close() {
	s.end()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var wait sync.WaitGroup
		wait.Go(s.audits.close)
		for _, c := range s.crawls.list() {
			wait.Go(c.view.close)
			if c.cluster != nil {
				wait.Go(c.cluster.close)
			}
		}
		wait.Wait()
	}()
	select {
	case <-closed:
	case <-time.After(endPatience): // do not wait for a hanging disk
	}
}

// A signer creates keys that only this process can create. It does not change.
type signer struct{ secret []byte }

// sign returns the key of a text.
func (k *signer) sign(of string) string {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(of))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

//go:embed static templates
var files embed.FS

// routes creates the parts of a site and routes requests to them.
func routes(done context.Context, cfg *Config, crawls *crawlSet, batches *batchSet, results *experiments,
	audits *audits, keys *signer, out *responder) http.Handler {
	streams := &eventStreams{done, newSlots(maxListeners, maxListeners)}
	list := newLister(done, crawls)
	archive := &archivedPages{crawls, keys, out, cfg.Secure, cfg.Log}
	front := &frontPages{crawls, batches, len(cfg.Experiments), list, out}
	pages := &crawlPages{crawls, archive, streams, cfg.Starter, out}
	days, control := &batchPages{batches, out}, &controls{crawls, keys, out, cfg.Log}
	rest := &api{endpointsOf(list, crawls, batches, results), control, out}

	mux := http.NewServeMux()
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the files are embedded
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", cached(http.FileServerFS(static))))
	rest.route(mux)
	none := func(*http.Request) top { return out.top(nil, "", "") }
	ofCrawl := func(r *http.Request) top { return out.top(crawls.named(r.PathValue("crawl")), "", "") }
	mux.HandleFunc("GET /{$}", front.front)
	out.route(mux, map[string]view{"/crawls": front.listPage}, none)
	out.route(mux, pages.views(), ofCrawl)
	out.route(mux, days.views(), days.head)
	out.route(mux, results.views(), none)
	out.route(mux, map[string]view{"/crawls/{crawl}/act/{do}": control.form}, ofCrawl)
	tables := &auditPages{crawls, audits, keys, out}
	out.route(mux, tables.views(), ofCrawl)
	mux.HandleFunc("POST /crawls/{crawl}/audit", tables.submit)
	mux.HandleFunc("GET /crawls/{crawl}/audit/{table}/csv", tables.download)
	begin := &starts{crawls, cfg.Starter, keys, out, cfg.Log}
	out.route(mux, begin.views(), ofCrawl)
	mux.HandleFunc("POST /start", begin.submitNew)
	mux.HandleFunc("POST /crawls/{crawl}/start", begin.submitResume)
	mux.HandleFunc("POST /crawls/{crawl}/recurring", begin.submitSchedule)
	exported := &downloads{crawls, make(chan struct{}, maxDownloads), out}
	mux.HandleFunc("GET /crawls/{crawl}/download/{format}", exported.serve)
	mux.HandleFunc("GET /experiments/{experiment}/files/{file}", results.file)
	mux.HandleFunc("POST /crawls/{crawl}/act/{do}", control.submit)
	mux.HandleFunc("GET /archived/{key}/{crawl}", archive.serve)
	mux.HandleFunc("GET /crawls/{crawl}/events", pages.listen)
	mux.HandleFunc("GET /crawls/{crawl}/cluster/events", pages.listenCluster)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		out.fail(w, r, &problem{http.StatusNotFound, "There is no such page", ""})
	})
	return mux
}

// endpointsOf returns the endpoints of all parts, as described by openapi.json.
func endpointsOf(list *lister, crawls *crawlSet, batches *batchSet, results *experiments) []endpoint {
	return slices.Concat([]endpoint{{"/crawls", "crawls", "The crawls.", nil, crawlList{}, list.getCrawls}},
		crawls.endpoints(), batches.endpoints(), results.endpoints())
}

// cached lets browsers cache files for a while: they change only with the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		next.ServeHTTP(w, r)
	})
}

// A crawl is a crawl that is shown. Its parts guard their own state; its own fields do not change.
type crawl struct {
	name, dir string
	archive   *lookup.Archive
	cluster   *cluster // nil for a crawl of one node
	hub       hub
	queue     *queue
	view      *sharedView
	status    *statusCache
	hosts     *hostRanking
	listed    listItem
	audit     AuditFunc  // may be nil
	export    ExportFunc // may be nil
}
