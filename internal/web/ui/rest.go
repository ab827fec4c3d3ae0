package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kumo/internal/fulltext"
	"kumo/internal/inspect"
	"kumo/internal/page"
	"kumo/internal/statefile"
	"kumo/internal/stats"
	"kumo/internal/web/archive"
	"kumo/internal/weburl"
)

// A problem is what went wrong, as RFC 9457 has it.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail,omitempty"`
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func badRequest(format string, args ...any) error {
	return &problem{http.StatusBadRequest, "The question is not right", fmt.Sprintf(format, args...)}
}

// problemOf says how an error is told.
func problemOf(err error) *problem {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, archive.ErrNone), errors.Is(err, archive.ErrNoAnswer):
		return &problem{http.StatusNotFound, "Not in the archive", err.Error()}
	case errors.Is(err, fulltext.ErrNone):
		return &problem{http.StatusNotFound, "There is no index", "kumo index, with the crawl's folder, makes one; kumo crawl --index does while it crawls"}
	case fulltext.IsDamaged(err):
		return &problem{http.StatusServiceUnavailable, "The index cannot be read", err.Error() + "; kumo index, with the crawl's folder, makes it anew"}
	case errors.Is(err, inspect.ErrGone):
		return &problem{http.StatusServiceUnavailable, "The crawl does not answer", "it is just starting or ending: ask again in a moment"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &problem{http.StatusServiceUnavailable, "It takes too long", "ask for less, or again in a moment"}
	}
	return &problem{http.StatusInternalServerError, "The crawl cannot say", err.Error()}
}

// An endpoint is one of the REST's.
type endpoint struct {
	path   string // below /api/v1
	name   string
	says   string
	params []param
	answer any // an example of its type
	give   func(s *Server, r *http.Request) (any, error)
}

// A param is a part of a question.
type param struct {
	in, name, kind, says string
	required             bool
}

// Lists go on where they ended.
type (
	crawlList struct {
		Crawls []crawlEntry `json:"crawls"`
	}
	crawlEntry struct {
		Name    string         `json:"name"`              // in URLs
		Folder  string         `json:"folder"`            // "": only its cluster is shown
		Cluster bool           `json:"cluster,omitempty"` // it has several nodes, and all of them are shown, too
		State   *inspect.State `json:"state,omitempty"`   // missing: why it cannot be said is in error
		Crawl   string         `json:"crawl,omitempty"`   // as its user has called it
		Ended   string         `json:"ended,omitempty"`
		Started time.Time      `json:"started,omitzero"`
		Pages   int64          `json:"pages"`
		Bytes   int64          `json:"bytes"`
		Failed  int64          `json:"failed"`
		Waiting int            `json:"urls_waiting"`
		Error   string         `json:"error,omitempty"`
		Looking bool           `json:"looking,omitempty"` // it is being looked at: nothing is known yet
	}
	hostPage struct {
		Hosts []inspect.Host `json:"hosts"`
		Next  string         `json:"next,omitempty"` // goes on behind these as "after"; missing: these are the last
		// some are missing for a moment: the crawl is being looked through, or what it has in memory put in order
		Partial bool      `json:"partial,omitempty"`
		Time    time.Time `json:"time,omitzero"` // of which the list is, where it may be some time ago
	}
	hostAnswer struct {
		Host   inspect.Host             `json:"host"`
		Robots []statefile.RobotsAnswer `json:"robots"` // as it was read last, of each scheme
		Queue  []inspect.Item           `json:"queue"`  // the first that wait
		// the crawl's files are being gone through for the first time: what robots.txt said may be missing for a moment
		Partial bool `json:"partial,omitempty"`
	}
	urlPage struct {
		URLs    []inspect.Known `json:"urls"`
		Next    string          `json:"next,omitempty"`
		Partial bool            `json:"partial,omitempty"` // some are missing for a moment, until they are in order
	}
	recordPage struct {
		Records []archive.Record `json:"records"` // the newest first
		Next    *int64           `json:"next,omitempty"`
	}
	headers struct {
		Status    int      `json:"status"`
		Headers   []header `json:"headers"`
		BodyBytes int      `json:"body_bytes"` // without content coding
		Truncated string   `json:"truncated,omitempty"`
		Malformed string   `json:"malformed,omitempty"`
	}
	header struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	linkPage struct {
		Links []archive.Link `json:"links"`
		All   int            `json:"all"` // how many there are
	}
)

var (
	crawlParam = param{"path", "crawl", "string", "the crawl's name, as /crawls lists it", true}
	limitParam = param{"query", "limit", "integer", "how many at most: 50 unless given, 500 at most", false}
	prefix     = func(of string) param {
		return param{"query", "prefix", "string", "only " + of + " that begin so", false}
	}
	after   = param{"query", "after", "string", "those behind this one: \"next\" of the answer before", false}
	idParam = param{"path", "id", "integer", "the record's id", true}
)

// endpoints are all of them, by their paths.
var endpoints = slices.Concat([]endpoint{
	{"/crawls", "crawls", "The crawls that are shown.", nil, crawlList{}, (*Server).giveCrawls},
	{"/crawls/{crawl}", "overview", "How a crawl stands: totals, rates, statuses, errors by kind, what waits, when it ends, and what is wrong, in words.",
		[]param{crawlParam}, Overview{}, (*Server).giveOverview},
	{"/crawls/{crawl}/cluster", "cluster", "A crawl of several nodes: its state, sums of all nodes, nodes by name, what is worth a word, and the last events.",
		[]param{crawlParam, after, limitParam}, clusterAnswer{}, (*Server).giveCluster},
	{"/crawls/{crawl}/curves", "curves", "How the counters went: over the last hour, and over the whole run. Of a crawl that does not run only the whole, by visits.",
		[]param{crawlParam}, stats.Curves{}, (*Server).giveCurves},
	{"/crawls/{crawl}/hosts", "hosts", "Hosts of known URLs, in order, or those where most waits.",
		[]param{crawlParam, prefix("hosts"), after, limitParam,
			{"query", "by", "string", "waiting: those where most waits, of which there is no next", false}}, hostPage{}, (*Server).giveHosts},
	{"/crawls/{crawl}/hosts/{host}", "host", "One host: how it stands, what its robots.txt said, and what waits there.",
		[]param{crawlParam, {"path", "host", "string", "the host, with its port if it has one", true}, limitParam}, hostAnswer{}, (*Server).giveHost},
	{"/crawls/{crawl}/explain", "explain", "What became of a URL, and why.",
		[]param{crawlParam, {"query", "url", "string", "the URL", true}}, inspect.Explanation{}, (*Server).giveExplanation},
	{"/crawls/{crawl}/urls", "urls", "Known URLs, in order.", []param{crawlParam, prefix("URLs"), after, limitParam}, urlPage{}, (*Server).giveURLs},
	{"/crawls/{crawl}/records", "records", "What was fetched, the newest first. A page of the list may have few or none, and yet a next one: it goes through a bounded part of the records.",
		[]param{crawlParam, {"query", "status", "string", "404; 4xx for a class; 0 for what was not answered", false},
			{"query", "type", "string", "a media type, or how it begins: text/", false},
			{"query", "prefix", "string", "how the URL begins behind its scheme: a host, or more", false},
			{"query", "lang", "string", "a language, or how its tag begins: en", false},
			{"query", "day", "string", "a day: 2026-11-21; or a month: 2026-11", false},
			{"query", "cursor", "integer", "where to go on: \"next\" of the answer before", false}, limitParam}, recordPage{}, (*Server).giveRecords},
	{"/crawls/{crawl}/records/{id}", "record", "One record.", []param{crawlParam, idParam}, archive.Record{}, (*Server).giveRecord},
	{"/crawls/{crawl}/records/{id}/headers", "headers", "The header fields of a record's answer.", []param{crawlParam, idParam}, headers{}, (*Server).giveHeaders},
	{"/crawls/{crawl}/records/{id}/text", "text", "What a record's answer says: the main text of HTML, other text as it is.",
		[]param{crawlParam, idParam}, archive.Text{}, (*Server).giveText},
	{"/crawls/{crawl}/records/{id}/links", "links", "The links of a record's answer.", []param{crawlParam, idParam, limitParam}, linkPage{}, (*Server).giveLinks},
}, contentEndpoints, batchEndpoints, experimentEndpoints)

func (s *Server) rest(mux *http.ServeMux) {
	for _, e := range endpoints {
		mux.HandleFunc("GET /api/v1"+e.path, func(w http.ResponseWriter, r *http.Request) {
			x, err := e.ask(s, r)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(x) // who asked may have gone
		})
	}
	mux.HandleFunc("POST /api/v1"+actPath, s.actFor)
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.ServeFileFS(w, r, files, "static/openapi.json")
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		for _, e := range endpoints {
			if r.Method != http.MethodGet && r.Method != http.MethodHead && matches(e.path, strings.TrimPrefix(r.URL.Path, "/api/v1")) {
				w.Header().Set("Allow", "GET, HEAD")
				s.fail(w, r, &problem{http.StatusMethodNotAllowed, "It can only be asked", "use GET"})
				return
			}
		}
		if matches(actPath, strings.TrimPrefix(r.URL.Path, "/api/v1")) {
			w.Header().Set("Allow", "POST")
			s.fail(w, r, &problem{http.StatusMethodNotAllowed, "It is done, and not asked", "use POST"})
			return
		}
		s.fail(w, r, &problem{http.StatusNotFound, "There is no such question", "/api/v1/openapi.json lists all"})
	})
}

// matches reports whether a path fits a pattern.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, have, func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") && b != "" })
}

// ask refuses what is not asked for in the one right way, and gives the answer.
func (e *endpoint) ask(s *Server, r *http.Request) (any, error) {
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
	return e.give(s, r)
}

// fail tells an error: a program as JSON, a person as a page.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if s.cfg.Only == nil && !strings.HasPrefix(r.URL.Path, "/api/") {
		s.failPage(w, p)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // who asked may have gone
}

const (
	usualLimit = 50
	maxLimit   = 500
)

func limit(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return usualLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, badRequest("limit is %q: a number from 1 to %d is wanted", text, maxLimit)
	}
	return n, nil
}

// of is the crawl that a path names.
func (s *Server) of(r *http.Request) (*crawl, error) {
	if c := s.named[r.PathValue("crawl")]; c != nil {
		if c.dir == "" && !strings.Contains(r.Pattern, "/cluster") && !strings.Contains(r.Pattern, "/act") {
			return nil, &problem{http.StatusNotFound, "Only the cluster is shown here", "each node has its hosts, URLs and pages: kumo node --ui serves them"}
		}
		return c, nil
	}
	return nil, &problem{http.StatusNotFound, "There is no such crawl here", "/api/v1/crawls lists all"}
}

func (s *Server) giveCrawls(r *http.Request) (any, error) {
	patience := listWait
	if len(s.crawls) <= shortList {
		patience = max(listPatience, listWait)
	}
	return crawlList{s.entries(r.Context(), patience)}, nil
}

func (s *Server) giveOverview(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	return c.overview(r.Context())
}

func (s *Server) giveCurves(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	return c.curves(r.Context())
}

func (s *Server) giveHosts(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	switch by := r.FormValue("by"); {
	case by == "waiting" && r.FormValue("prefix")+r.FormValue("after") == "":
		return c.busiest(r.Context(), n)
	case by != "":
		return nil, badRequest("by is %q: only \"waiting\" is known, and goes without prefix and after", by)
	}
	return c.hostsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), n)
}

// hostsFrom are the hosts whose names begin with prefix and come after another.
func (c *crawl) hostsFrom(ctx context.Context, prefix, after string, n int) (p hostPage, err error) {
	p.Hosts = []inspect.Host{}
	err = c.use(ctx, func(v *inspect.View) error {
		for h, err := range v.HostsFrom(ctx, prefix, after, n+1) {
			if p.Partial = errors.Is(err, inspect.ErrBehind); err != nil {
				return unless(p.Partial, err)
			}
			p.Hosts = append(p.Hosts, h)
		}
		return nil
	})
	if len(p.Hosts) > n {
		p.Hosts = p.Hosts[:n]
		p.Next = p.Hosts[n-1].Key
	}
	return p, err
}

// unless is an error, but for one that is none.
func unless(none bool, err error) error {
	if none {
		return nil
	}
	return err
}

// A hostList is the hosts where most waited when somebody looked last. A crawl of millions of hosts looks through them
// for it, so it is not asked too often, and not waited for where there is an older list.
type hostList struct {
	mu      sync.Mutex // guards all
	all     []inspect.Host
	n       int // that were asked for
	time    time.Time
	took    time.Duration
	err     error         // of the last look
	looking chan struct{} // closed when a look ends; nil: nobody looks
}

const (
	leastHostAge = 2 * time.Second
	lookTime     = time.Minute // that a look may take
)

// hostPatience is how long a look is waited for, and where nobody has looked before: who goes to such a crawl for the
// first time gets an empty list then, and the right one in a moment.
var hostPatience = [2]time.Duration{50 * time.Millisecond, 150 * time.Millisecond}

// busiest are the first n.
func (c *crawl) busiest(ctx context.Context, n int) (p hostPage, err error) {
	l := &c.hosts
	looking, patience := c.lookForBusiest(n)
	if looking != nil {
		select {
		case <-looking:
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(patience):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.looking == nil && l.err != nil:
		return p, l.err
	case l.n == 0:
		return hostPage{Hosts: []inspect.Host{}, Partial: true}, nil
	}
	return hostPage{Hosts: l.all[:min(n, len(l.all))], Time: l.time, Partial: l.n < n && len(l.all) == l.n}, nil
}

// lookForBusiest begins to look unless somebody does, or what was found last will do: then there is nothing to wait for.
func (c *crawl) lookForBusiest(n int) (looking chan struct{}, patience time.Duration) {
	l := &c.hosts
	l.mu.Lock()
	defer l.mu.Unlock()
	patience = hostPatience[1]
	if l.n >= n && l.err == nil {
		if time.Since(l.time) < max(leastHostAge, 20*l.took) {
			return nil, 0
		}
		patience = hostPatience[0]
	}
	if l.looking == nil {
		l.looking = make(chan struct{})
		go c.findBusiest(n)
	}
	return l.looking, patience
}

// findBusiest looks, for whoever waits for it.
func (c *crawl) findBusiest(n int) {
	ctx, cancel := context.WithTimeout(c.done, lookTime)
	defer cancel()
	begin, all := time.Now(), []inspect.Host{}
	err := c.use(ctx, func(v *inspect.View) error {
		for h, err := range v.Hosts(ctx, n) {
			if err != nil {
				return err
			}
			all = append(all, h)
		}
		return nil
	})
	l := &c.hosts
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.looking)
	if l.looking, l.err = nil, err; err == nil {
		l.all, l.n, l.time, l.took = all, n, time.Now(), time.Since(begin)
	}
}

func (s *Server) giveHost(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	return c.hostAnswer(r.Context(), r.PathValue("host"), n)
}

func (c *crawl) hostAnswer(ctx context.Context, host string, n int) (*hostAnswer, error) {
	x := &hostAnswer{Robots: []statefile.RobotsAnswer{}, Queue: []inspect.Item{}}
	found := false
	err := c.use(ctx, func(v *inspect.View) error {
		for h, err := range v.HostsFrom(ctx, host+"/", "", 1) {
			if x.Partial = errors.Is(err, inspect.ErrBehind); err != nil {
				if !x.Partial {
					return err
				}
				break
			}
			if h.Key == host {
				x.Host, found = h, true
			}
		}
		for it, err := range v.Queue(ctx, host, n) {
			if err != nil {
				return err
			}
			x.Queue = append(x.Queue, it)
		}
		if !found && len(x.Queue) == 0 && !x.Partial {
			return &problem{http.StatusNotFound, "The crawl does not know the host", "name it with its port if it has one, as the list of hosts does"}
		}
		for _, scheme := range []string{"https://", "http://"} {
			a, err := v.RobotsAnswer(ctx, scheme+host)
			if errors.Is(err, inspect.ErrReading) {
				x.Partial, err = true, nil
			}
			if err != nil {
				return err
			}
			if a != nil {
				x.Robots = append(x.Robots, *a)
			}
		}
		return nil
	})
	if !found {
		x.Host.Key = host
	}
	return x, err
}

func (s *Server) giveExplanation(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	return c.explain(r.Context(), r.FormValue("url"))
}

func (c *crawl) explain(ctx context.Context, url string) (x *inspect.Explanation, err error) {
	if u, err := weburl.Parse(url); err != nil || u.Host() == "" {
		return nil, badRequest("%q is no URL: it begins with http:// or https:// and a host", cut(url, 200))
	}
	err = c.use(ctx, func(v *inspect.View) (err error) {
		x, err = v.Explain(ctx, url)
		return err
	})
	return x, err
}

func (s *Server) giveURLs(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	return c.urlsFrom(r.Context(), r.FormValue("prefix"), r.FormValue("after"), n)
}

func (c *crawl) urlsFrom(ctx context.Context, prefix, after string, n int) (p urlPage, err error) {
	p.URLs = []inspect.Known{}
	err = c.use(ctx, func(v *inspect.View) error {
		for k, err := range v.SeenFrom(ctx, prefix, after, n+1) {
			if p.Partial = errors.Is(err, inspect.ErrBehind); err != nil {
				return unless(p.Partial, err)
			}
			p.URLs = append(p.URLs, k)
		}
		return nil
	})
	if len(p.URLs) > n {
		p.URLs = p.URLs[:n]
		p.Next = p.URLs[n-1].URL
	}
	return p, err
}

func (s *Server) giveRecords(r *http.Request) (any, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, err
	}
	return c.records(r)
}

func filterOf(r *http.Request) archive.Filter {
	return archive.Filter{Status: r.FormValue("status"), Type: r.FormValue("type"), Prefix: r.FormValue("prefix"),
		Lang: r.FormValue("lang"), Day: r.FormValue("day")}
}

func (c *crawl) records(r *http.Request) (p recordPage, err error) {
	n, err := limit(r)
	if err != nil {
		return p, err
	}
	f, cursor := filterOf(r), int64(archive.Last)
	if err := f.Check(); err != nil {
		return p, badRequest("%v", err)
	}
	if text := r.FormValue("cursor"); text != "" {
		if cursor, err = strconv.ParseInt(text, 10, 64); err != nil || cursor < 0 {
			return p, badRequest("cursor is %q: \"next\" of an answer is wanted", cut(text, 40))
		}
	}
	records, next, err := c.archive.List(r.Context(), f, cursor, n)
	p.Records = orEmpty(records)
	if next > 0 {
		p.Next = &next
	}
	return p, err
}

// recordOf is the record that a path names.
func (s *Server) recordOf(r *http.Request) (*crawl, *archive.Record, error) {
	c, err := s.of(r)
	if err != nil {
		return nil, nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, nil, badRequest("%q is no record's id", cut(r.PathValue("id"), 40))
	}
	rec, err := c.archive.Record(id)
	return c, rec, err
}

// answerOf is a record's answer.
func (s *Server) answerOf(r *http.Request) (*archive.Record, *page.Response, error) {
	c, rec, err := s.recordOf(r)
	if err != nil {
		return nil, nil, err
	}
	resp, err := c.archive.Answer(r.Context(), rec)
	return rec, resp, err
}

func (s *Server) giveRecord(r *http.Request) (any, error) {
	_, rec, err := s.recordOf(r)
	return rec, err
}

func (s *Server) giveHeaders(r *http.Request) (any, error) {
	_, resp, err := s.answerOf(r)
	if err != nil {
		return nil, err
	}
	return headersOf(resp), nil
}

func headersOf(resp *page.Response) headers {
	h := headers{Status: resp.Status, Headers: []header{}, BodyBytes: len(resp.Body), Truncated: string(resp.Truncated), Malformed: resp.Malformed}
	for name, values := range resp.Header {
		for _, v := range values {
			h.Headers = append(h.Headers, header{name, v})
		}
	}
	slices.SortStableFunc(h.Headers, func(a, b header) int { return cmp.Compare(a.Name, b.Name) })
	return h
}

func (s *Server) giveText(r *http.Request) (any, error) {
	_, resp, err := s.answerOf(r)
	if err != nil {
		return nil, err
	}
	return archive.TextOf(resp)
}

func (s *Server) giveLinks(r *http.Request) (any, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	_, resp, err := s.answerOf(r)
	if err != nil {
		return nil, err
	}
	links, all, err := archive.Links(resp, n)
	return linkPage{orEmpty(links), all}, err
}
