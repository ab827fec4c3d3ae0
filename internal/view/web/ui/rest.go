package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kumo/internal/app/inspect"
	"kumo/internal/app/lookup"
	"kumo/internal/base/stats"
	"kumo/internal/content/document"
)

// An endpoint is an endpoint of the REST API.
type endpoint struct {
	path   string // below /api/v1
	name   string
	says   string
	params []param
	answer any // example of the answer's type
	get    func(r *http.Request) (any, error)
}

// A param is a parameter of a request.
type param struct {
	in, name, kind, says string
	required             bool
}

var (
	crawlParam = param{"path", "crawl", "string", "the crawl's name, as listed by /crawls", true}
	limitParam = param{"query", "limit", "integer", "maximum number of entries: default 50, at most 500", false}
	prefix     = func(of string) param {
		return param{"query", "prefix", "string", "only " + of + " with this prefix", false}
	}
	after   = param{"query", "after", "string", "where to continue: \"next\" of the previous answer", false}
	idParam = param{"path", "id", "integer", "the record's id", true}
)

// endpoints returns the endpoints for one crawl.
func (set *crawlSet) endpoints() []endpoint {
	return append([]endpoint{
		{"/crawls/{crawl}", "overview", "The state of a crawl: totals, rates, statuses, errors by kind, the queue, " +
			"the forecast, and problems as text.",
			[]param{crawlParam}, Overview{}, withTarget(set.find, getOverview)},
		{
			"/crawls/{crawl}/curves",
			"curves",
			"History of the counters: over the last hour, and over the whole run. For a crawl " +
				"that is not running, only the whole run, by visits.",
			[]param{crawlParam},
			stats.Curves{},
			withTarget(set.find, (*crawl).curves),
		},
		{"/crawls/{crawl}/hosts", "hosts", "Hosts of known URLs, sorted, or those with the most pending URLs.",
			[]param{crawlParam, prefix("hosts"), after, limitParam,
				{"query", "by", "string", "waiting: those with the most pending URLs; then there is no next", false}},
			hostPage{},
			listWithTarget(set.find, getHosts)},
		{"/crawls/{crawl}/hosts/{host}", "host", "One host: its state, its robots.txt answers, and its queue.",
			[]param{crawlParam, {"path", "host", "string", "the host, with its port if it has one", true}, limitParam},
			hostAnswer{}, listWithTarget(set.find, (*crawl).hostAnswer)},
		{"/crawls/{crawl}/explain", "explain", "The outcome of a URL, and the reasons.",
			[]param{crawlParam, {"query", "url", "string", "the URL", true}}, inspect.Explanation{},
			withTarget(set.find, getExplanation)},
		{"/crawls/{crawl}/urls", "urls", "Known URLs, sorted.", []param{crawlParam, prefix("URLs"), after, limitParam},
			urlPage{}, listWithTarget(set.find, getURLs)},
		{"/crawls/{crawl}/records", "records", "Fetched records, newest first. An answer may contain few records " +
			"or none and still have a next one: a limited part of the records is scanned.",
			[]param{crawlParam, {"query", "status", "string", "404; 4xx for a class; 0 for URLs without an answer",
				false},
				{"query", "type", "string", "a media type or a prefix: text/", false},
				{"query", "prefix", "string", "prefix of the URL after its scheme: a host, or more", false},
				{"query", "lang", "string", "a language or a prefix of its tag: en", false},
				{"query", "day", "string", "a day: 2026-11-21; or a month: 2026-11", false},
				{"query", "cursor", "integer", "where to continue: \"next\" of the previous answer", false},
				limitParam}, recordPage{},
			withTarget(set.find, (*crawl).records)},
		{"/crawls/{crawl}/records/{id}", "record", "One record.", []param{crawlParam, idParam}, lookup.Record{},
			set.getRecord},
		{"/crawls/{crawl}/records/{id}/headers", "headers", "The header fields of a record's answer.",
			[]param{crawlParam, idParam}, headers{}, withTarget(set.answer, getHeaders)},
		{"/crawls/{crawl}/records/{id}/text", "text",
			"The text of a record's answer: the main text of HTML, other text unchanged.",
			[]param{crawlParam, idParam}, lookup.Text{}, withTarget(set.document, getText)},
		{"/crawls/{crawl}/records/{id}/links", "links", "The links of a record's answer.",
			[]param{crawlParam, idParam, limitParam}, linkPage{}, set.getLinks},
	}, append(set.contentEndpoints(), endpoint{"/crawls/{crawl}/cluster", "cluster",
		"A crawl of several nodes: its state, totals of all nodes, nodes by name, notices, and the last events.",
		[]param{crawlParam, after, limitParam}, clusterAnswer{}, listWithTarget(set.clustered, getCluster)})...)
}

// An api routes requests of programs: /api/v1. Its fields do not change.
type api struct {
	endpoints []endpoint
	controls  *controls
	out       *responder
}

func (a *api) route(mux *http.ServeMux) {
	for _, e := range a.endpoints {
		mux.HandleFunc("GET /api/v1"+e.path, func(w http.ResponseWriter, r *http.Request) {
			x, err := e.call(r)
			if err != nil {
				a.out.fail(w, r, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(x) // the client may have disconnected
		})
	}
	mux.HandleFunc("POST /api/v1"+actPath, a.controls.serveAPI)
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.ServeFileFS(w, r, files, "static/openapi.json")
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		for _, e := range a.endpoints {
			if r.Method != http.MethodGet && r.Method != http.MethodHead &&
				matches(e.path, strings.TrimPrefix(r.URL.Path, "/api/v1")) {
				w.Header().Set("Allow", "GET, HEAD")
				a.out.fail(w, r, &problem{http.StatusMethodNotAllowed, "Read only", "use GET"})
				return
			}
		}
		if matches(actPath, strings.TrimPrefix(r.URL.Path, "/api/v1")) {
			w.Header().Set("Allow", "POST")
			a.out.fail(w, r, &problem{http.StatusMethodNotAllowed, "Actions only", "use POST"})
			return
		}
		a.out.fail(w, r, &problem{http.StatusNotFound, "There is no such endpoint", "/api/v1/openapi.json lists all"})
	})
}

// matches reports whether a path fits a pattern.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") && b != "" })
}

// call checks the parameters of a request and returns its answer.
func (e *endpoint) call(r *http.Request) (any, error) {
	for name, values := range r.URL.Query() {
		at := slices.IndexFunc(e.params, func(p param) bool { return p.in == "query" && p.name == name })
		if at < 0 {
			return nil, badRequest("unknown parameter %q", name)
		}
		if values[0] == "" && e.params[at].kind == "integer" {
			return nil, badRequest("%s is empty: expected a number", name)
		}
		if len(values) > 1 {
			return nil, badRequest("%q is given twice", name)
		}
	}
	return e.get(r)
}

const (
	defaultLimit = 50
	maxLimit     = 500
)

// withPathTarget adapts a function that also takes the object in the path.
func withPathTarget[T, A any](find func(*http.Request) (T, error), get func(T, *http.Request) (A, error),
) func(*http.Request) (A, error) {
	return func(r *http.Request) (answer A, err error) {
		it, err := find(r)
		if err != nil {
			return answer, err
		}
		return get(it, r)
	}
}

// withTarget adapts a function that takes the object in the path, for an endpoint.
func withTarget[T, A any](find func(*http.Request) (T, error), get func(T, *http.Request) (A, error),
) func(*http.Request) (any, error) {
	return withPathTarget(find, func(it T, r *http.Request) (any, error) { return get(it, r) })
}

// listWithTarget is like withTarget for a list of at most n entries.
func listWithTarget[T, A any](find func(*http.Request) (T, error), get func(T, *http.Request, int) (A, error),
) func(*http.Request) (any, error) {
	return withTarget(find, func(it T, r *http.Request) (any, error) {
		n, err := limit(r)
		if err != nil {
			return nil, err
		}
		return get(it, r, n)
	})
}

func limit(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, badRequest("limit is %q: expected a number from 1 to %d", text, maxLimit)
	}
	return n, nil
}

// pageOfList returns up to n entries of a sorted list after a key, and the key to continue with.
func pageOfList[T any](all []T, key func(T) string, after string, n int) (some []T, next string) {
	at, has := slices.BinarySearchFunc(all, after, func(x T, after string) int { return cmp.Compare(key(x), after) })
	if has {
		at++
	}
	if some = all[at:]; len(some) > n {
		some = some[:n]
		next = key(some[n-1])
	}
	return some, next
}

// collectUpTo collects up to n values. It reports whether some are temporarily missing, and whether there are more.
func collectUpTo[T any](n int, values iter.Seq2[T, error]) (some []T, partial, more bool, err error) {
	some = []T{}
	for v, err := range values {
		if partial = errors.Is(err, inspect.ErrIncomplete); partial {
			break
		}
		if err != nil {
			return some, false, false, err
		}
		some = append(some, v)
	}
	return some[:min(n, len(some))], partial, len(some) > n, nil
}

// A crawlSet contains the crawls, by name and in order. Crawls can be added; each guards its own state.
type crawlSet struct {
	done  context.Context
	views *idleList

	mu     sync.RWMutex // guards the fields below
	all    []*crawl
	byName map[string]*crawl
	// there may be several
	several   bool
	documents document.Reader // nil: documents are not read
}

// list returns the crawls in order.
func (set *crawlSet) list() []*crawl {
	set.mu.RLock()
	defer set.mu.RUnlock()
	return set.all[:len(set.all):len(set.all)]
}

// named returns the crawl with a name; nil if there is none.
func (set *crawlSet) named(name string) *crawl {
	set.mu.RLock()
	defer set.mu.RUnlock()
	return set.byName[name]
}

// find returns the crawl in a path.
func (set *crawlSet) find(r *http.Request) (*crawl, error) {
	if c := set.named(r.PathValue("crawl")); c != nil {
		if c.dir == "" && !strings.Contains(r.Pattern, "/cluster") && !strings.Contains(r.Pattern, "/act") {
			return nil, &problem{http.StatusNotFound, "This page shows only the cluster",
				"the nodes' own pages have their hosts, URLs and pages: kumo node --ui serves them"}
		}
		return c, nil
	}
	return nil, &problem{http.StatusNotFound, "There is no such crawl", "/api/v1/crawls lists all"}
}
