package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/app/inspect"
	"kumo/internal/app/lookup"
	"kumo/internal/base/stats"
)

// An endpoint is one of the REST's.
type endpoint struct {
	path   string // below /api/v1
	name   string
	says   string
	params []param
	answer any // an example of its type
	get    func(r *http.Request) (any, error)
}

// A param is a part of a question.
type param struct {
	in, name, kind, says string
	required             bool
}

var (
	crawlParam = param{"path", "crawl", "string", "the crawl's name, as /crawls lists it", true}
	limitParam = param{"query", "limit", "integer", "how many at most: 50 unless given, 500 at most", false}
	prefix     = func(of string) param {
		return param{"query", "prefix", "string", "only " + of + " that begin so", false}
	}
	after   = param{"query", "after", "string", "those behind this one: \"next\" of the answer before", false}
	idParam = param{"path", "id", "integer", "the record's id", true}
)

// endpoints are those for programs' requests about one crawl.
func (set *crawlSet) endpoints() []endpoint {
	return append([]endpoint{
		{"/crawls/{crawl}", "overview", "How a crawl stands: totals, rates, statuses, errors by kind, what waits, when it " +
			"ends, and what is wrong, in words.",
			[]param{crawlParam}, Overview{}, withTarget(set.find, getOverview)},
		{
			"/crawls/{crawl}/curves",
			"curves",
			"How the counters went: over the last hour, and over the whole run. Of a crawl " +
				"that does not run only the whole, by visits.",
			[]param{crawlParam},
			stats.Curves{},
			withTarget(set.find, (*crawl).curves),
		},
		{"/crawls/{crawl}/hosts", "hosts", "Hosts of known URLs, in order, or those where most waits.",
			[]param{crawlParam, prefix("hosts"), after, limitParam,
				{"query", "by", "string", "waiting: those where most waits, of which there is no next", false}}, hostPage{},
			listWithTarget(set.find, getHosts)},
		{"/crawls/{crawl}/hosts/{host}", "host", "One host: how it stands, what its robots.txt said, and what waits there.",
			[]param{crawlParam, {"path", "host", "string", "the host, with its port if it has one", true}, limitParam},
			hostAnswer{}, listWithTarget(set.find, (*crawl).hostAnswer)},
		{"/crawls/{crawl}/explain", "explain", "What became of a URL, and why.",
			[]param{crawlParam, {"query", "url", "string", "the URL", true}}, inspect.Explanation{},
			withTarget(set.find, getExplanation)},
		{"/crawls/{crawl}/urls", "urls", "Known URLs, in order.", []param{crawlParam, prefix("URLs"), after, limitParam},
			urlPage{}, listWithTarget(set.find, getURLs)},
		{"/crawls/{crawl}/records", "records", "What was fetched, the newest first. A page of the list may have few " +
			"or none, and yet a next one: it goes through a bounded part of the records.",
			[]param{crawlParam, {"query", "status", "string", "404; 4xx for a class; 0 for what was not answered", false},
				{"query", "type", "string", "a media type, or how it begins: text/", false},
				{"query", "prefix", "string", "how the URL begins behind its scheme: a host, or more", false},
				{"query", "lang", "string", "a language, or how its tag begins: en", false},
				{"query", "day", "string", "a day: 2026-11-21; or a month: 2026-11", false},
				{"query", "cursor", "integer", "where to go on: \"next\" of the answer before", false}, limitParam}, recordPage{},
			withTarget(set.find, (*crawl).records)},
		{"/crawls/{crawl}/records/{id}", "record", "One record.", []param{crawlParam, idParam}, lookup.Record{},
			set.getRecord},
		{"/crawls/{crawl}/records/{id}/headers", "headers", "The header fields of a record's answer.",
			[]param{crawlParam, idParam}, headers{}, withTarget(set.answer, getHeaders)},
		{"/crawls/{crawl}/records/{id}/text", "text",
			"What a record's answer says: the main text of HTML, other text as it is.",
			[]param{crawlParam, idParam}, lookup.Text{}, withTarget(set.answer, getText)},
		{"/crawls/{crawl}/records/{id}/links", "links", "The links of a record's answer.",
			[]param{crawlParam, idParam, limitParam}, linkPage{}, set.getLinks},
	}, append(set.contentEndpoints(), endpoint{"/crawls/{crawl}/cluster", "cluster",
		"A crawl of several nodes: its state, sums of all nodes, nodes by name, what is worth a word, and the last events.",
		[]param{crawlParam, after, limitParam}, clusterAnswer{}, listWithTarget(set.clustered, getCluster)})...)
}

// An api routes programs' requests: /api/v1. Its fields do not change.
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
			_ = json.NewEncoder(w).Encode(x) // who asked may have gone
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
				a.out.fail(w, r, &problem{http.StatusMethodNotAllowed, "It can only be asked", "use GET"})
				return
			}
		}
		if matches(actPath, strings.TrimPrefix(r.URL.Path, "/api/v1")) {
			w.Header().Set("Allow", "POST")
			a.out.fail(w, r, &problem{http.StatusMethodNotAllowed, "It is done, and not asked", "use POST"})
			return
		}
		a.out.fail(w, r, &problem{http.StatusNotFound, "There is no such question", "/api/v1/openapi.json lists all"})
	})
}

// matches reports whether a path fits a pattern.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") && b != "" })
}

// call checks the parameters of a request, and returns its answer.
func (e *endpoint) call(r *http.Request) (any, error) {
	for name, values := range r.URL.Query() {
		at := slices.IndexFunc(e.params, func(p param) bool { return p.in == "query" && p.name == name })
		if at < 0 {
			return nil, badRequest("there is no %q to be given here", name)
		}
		if values[0] == "" && e.params[at].kind == "integer" {
			return nil, badRequest("%s is empty: a number is wanted", name)
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

// withPathTarget makes a function of a request of one that is given what the path names as well.
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

// withTarget makes an endpoint's function of one that is given what the path names.
func withTarget[T, A any](find func(*http.Request) (T, error), get func(T, *http.Request) (A, error),
) func(*http.Request) (any, error) {
	return withPathTarget(find, func(it T, r *http.Request) (any, error) { return get(it, r) })
}

// listWithTarget is of for a list, of at most n entries.
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
		return 0, badRequest("limit is %q: a number from 1 to %d is wanted", text, maxLimit)
	}
	return n, nil
}

// pageOfList are up to n of what is in the order of its keys, behind one, and the key to go on behind.
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

// collectUpTo collects values, and reports whether some are missing for a moment, and whether there are more than n.
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

// A crawlSet is the crawls that are shown, by name and in their order. It does not change; each crawl guards its own
// state.
type crawlSet struct {
	all    []*crawl
	byName map[string]*crawl
}

// query returns the crawl that a path names.
func (set *crawlSet) find(r *http.Request) (*crawl, error) {
	if c := set.byName[r.PathValue("crawl")]; c != nil {
		if c.dir == "" && !strings.Contains(r.Pattern, "/cluster") && !strings.Contains(r.Pattern, "/act") {
			return nil, &problem{http.StatusNotFound, "Only the cluster is shown here",
				"each node has its hosts, URLs and pages: kumo node --ui serves them"}
		}
		return c, nil
	}
	return nil, &problem{http.StatusNotFound, "There is no such crawl here", "/api/v1/crawls lists all"}
}
