package ui

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/lookup"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/stats"
	"kumo/internal/state/forecast"
	"kumo/internal/state/store/jsonl"
)

// A view returns a page. Its error is displayed as a page, too.
type view = func(*http.Request) (*filled, error)

// A filled template is a page or a part of one.
type filled struct {
	template string
	data     any
}

// route serves views by their paths. head returns the head of an error page, which links back to the crawl or batch
// crawls in the path.
func (out *responder) route(mux *http.ServeMux, views map[string]view, head func(*http.Request) top) {
	for path, show := range views {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			x, err := show(r)
			if err != nil {
				out.failUnder(w, r, err, head(r))
				return
			}
			out.render(w, http.StatusOK, x.template, x.data)
		})
	}
}

// crawlPages serves the pages of one crawl and its cluster, and their event streams. Its fields do not change.
type crawlPages struct {
	crawls  *crawlSet
	archive *archivedPages
	streams *eventStreams
	starter Starter // may be nil
	out     *responder
}

func (h *crawlPages) views() map[string]view {
	return map[string]view{
		"/crawls/{crawl}":              withPathTarget(h.crawls.find, h.overviewPage),
		"/crawls/{crawl}/curves":       withPathTarget(h.crawls.find, h.curvesPart),
		"/crawls/{crawl}/hosts":        withPathTarget(h.crawls.find, h.hostsPage),
		"/crawls/{crawl}/hosts/{host}": withPathTarget(h.crawls.find, h.hostPage),
		"/crawls/{crawl}/urls":         withPathTarget(h.crawls.find, h.urlsPage),
		"/crawls/{crawl}/excluded":     withPathTarget(h.crawls.find, h.excludedPage),
		"/crawls/{crawl}/pages":        withPathTarget(h.crawls.find, h.recordsPage),
		"/crawls/{crawl}/pages/{id}":   h.recordPage,
		"/crawls/{crawl}/cluster":      withPathTarget(h.crawls.clustered, h.clusterPage),
		"/crawls/{crawl}/cluster/part": withPathTarget(h.crawls.clustered, h.clusterPart),
	}
}

// templates are parsed for the first page: most runs of kumo show none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"show": show, "name": showName,
		"lines": showLines, "plain": plain, "typed": typed, "cut": cut, "grouped": func(n any) string {
			return forecast.Grouped(toInt(n))
		},
		"bytes": func(n any) string { return stats.Bytes(toInt(n)) }, "span": stats.Span, "seconds": span, "time": clock,
		"path": url.PathEscape,
		"in":   in, "dict": dict, "percent": percent, "statusClass": statusClass,
		"percentOf": func(part float64) string { return fmt.Sprintf("%.0f %%", math.Floor(100*part)) },
		"counted": func(n any, things string) string {
			return forecast.Grouped(toInt(n)) + " " + stats.Unit(toInt(n), things)
		},
		"times100": func(share float64) float64 { return 100 * share },
	}).ParseFS(files, "templates/*.html"))
})

// dict returns the arguments of a nested template: names and values alternate.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

func toInt(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	}
	return 0
}

// clock formats a time in UTC; the zero time as a dash.
func clock(t time.Time) string {
	if t.IsZero() || t.Unix() <= 0 {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// in formats the time until t.
func in(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero() || t.Unix() <= 0:
		return "–"
	case d <= 0:
		return "now"
	default:
		return "in " + stats.Span(d)
	}
}

func percent(n, of int64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func statusClass(status int) string {
	switch {
	case status == 0 || status >= 500:
		return "bad"
	case status >= 400:
		return "odd"
	case status >= 300:
		return "moved"
	}
	return "good"
}

// top is the data for the head of each page.
type top struct {
	Title      string
	Crawl      string // name in URLs; "": not a page of a crawl
	Folder     string
	Tab        string
	Many       bool   // there are other crawls
	Batch      string // name of the batch crawls in URLs; "": not a page of one
	Experiment string // same
	HasCluster bool   // all nodes of its cluster are shown, too
	HasAudit   bool
	Starts     bool // users may start crawls
	Again      bool // data is temporarily missing: reload the page after a while
}

func (out *responder) top(c *crawl, title, tab string) top {
	t := top{Title: title, Tab: tab, Many: out.many, Starts: out.starts}
	if c != nil {
		t.Crawl, t.Folder, t.HasCluster = c.name, c.dir, c.cluster != nil
		t.HasAudit = c.audit != nil
	}
	return t
}

// render writes a complete page, or an error.
func (out *responder) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name+".html", data); err != nil {
		out.log.Error("web page", "page", name, "error", err.Error())
		http.Error(w, "cannot render the page", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have disconnected
}

// frontPages serves the list of everything that is shown. Its fields do not change.
type frontPages struct {
	crawls      *crawlSet
	batches     *batchSet
	experiments int // number of their folders
	list        *lister
	out         *responder
}

// front redirects to the only crawl, or to the list.
func (h *frontPages) front(w http.ResponseWriter, r *http.Request) {
	to, crawls := "/crawls", h.crawls.list()
	switch {
	case len(crawls)+len(h.batches.all)+h.experiments > 1 || h.out.starts:
	case len(crawls) == 1:
		to += "/" + url.PathEscape(crawls[0].name)
		if crawls[0].cluster != nil {
			to += "/cluster"
		}
	case len(h.batches.all) == 1:
		to = "/batches/" + url.PathEscape(h.batches.all[0].name)
	case h.experiments == 1:
		to = "/experiments"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (h *frontPages) listPage(r *http.Request) (*filled, error) {
	all, looking := h.list.entries(r.Context(), listWait), 0
	for i := range all {
		if all[i].Looking {
			looking++
		}
	}
	head := h.out.top(nil, "Crawls", "")
	head.Again = looking > 0
	return &filled{"crawls", struct {
		top
		Crawls      []crawlEntry
		Batches     []batchEntry
		Experiments bool
		Looking     int
	}{head, all, h.batches.entries(r.Context()), h.experiments > 0, looking}}, nil
}

// A count is a bar of a table.
type count struct {
	Name  string
	N     int64
	Of    int64 // total
	Class string
	Link  string
}

const maxCounts = 12

func counts[K cmp.Ordered](m map[K]int64, class func(K) string, link func(K) string) (all []count) {
	var sum int64
	for k, n := range m {
		if n == 0 {
			continue
		}
		c := count{Name: fmt.Sprint(k), N: n}
		if class != nil {
			c.Class = class(k)
		}
		if link != nil && c.Name != "" {
			c.Link = link(k)
		}
		if c.Name == "" {
			c.Name = "(none)"
		}
		all = append(all, c)
		sum += n
	}
	slices.SortFunc(all, func(a, b count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	if len(all) > maxCounts {
		rest := count{Name: fmt.Sprintf("%d others", len(all)-maxCounts+1)}
		for _, c := range all[maxCounts-1:] {
			rest.N += c.N
		}
		all = append(all[:maxCounts-1], rest)
	}
	for i := range all {
		all[i].Of = sum
	}
	return all
}

func (h *crawlPages) overviewPage(c *crawl, r *http.Request) (*filled, error) {
	o, err := c.status.overview(r.Context())
	if err != nil {
		return nil, err
	}
	charts, err := c.charts(r)
	if err != nil {
		return nil, err
	}
	pages := "/crawls/" + url.PathEscape(c.name) + "/pages?"
	excluded := "/crawls/" + url.PathEscape(c.name) + "/excluded?rule="
	return &filled{
		"overview",
		struct {
			top
			*Overview
			Live                            map[string]string
			Charts                          []chart
			All                             bool
			Done                            string
			ByStatus, ByType, ByError, Left []count
			ByUsage                         []count
			Delays, Schedule                string
			Runs, Paused                    bool
		}{
			h.out.top(c, "Overview", "overview"),
			o,
			liveValues(o),
			charts,
			!o.runs() || r.FormValue("span") == "all",
			doneText(r),
			counts(o.Statuses, statusClass, func(k int) string { return pages + "status=" + strconv.Itoa(k) }),
			counts(o.Types, nil, func(k string) string { return pages + "type=" + url.QueryEscape(k) }),
			counts(o.Errors, func(string) string { return "bad" }, nil),
			counts(o.Skipped, nil, func(k string) string { return excluded + url.QueryEscape(k) }),
			counts(o.Usage, nil, nil),
			c.waitsFor(r, o),
			h.scheduleText(c, o.State),
			o.runs(),
			o.State == inspect.Paused,
		},
	}, nil
}

// waitsFor describes what the busiest hosts wait for.
func (c *crawl) waitsFor(r *http.Request, o *Overview) string {
	if !o.runs() || o.Waiting == 0 {
		return ""
	}
	p, err := c.hosts.first(r.Context(), hostsShown)
	hosts := p.Hosts
	if err != nil || len(hosts) == 0 {
		return ""
	}
	reasons := map[string]int64{}
	for _, h := range hosts {
		reasons[h.For]++
	}
	var parts []string
	for _, k := range counts(reasons, nil, nil) {
		parts = append(parts, fmt.Sprintf("%d for %s", k.N, reasonText(k.Name)))
	}
	return fmt.Sprintf("The busiest %s are waiting: %s.", stats.Count(len(hosts), "hosts"), strings.Join(parts, ", "))
}

// reasonText returns what a host waits for, within a sentence.
func reasonText(why string) string { return cmp.Or(reasonTexts[why], why) }

var reasonTexts = map[string]string{
	"a place":     "a free worker",
	"delay":       "the crawl's delay",
	"Crawl-delay": "the Crawl-delay of their robots.txt",
	"robots.txt":  "their robots.txt",
	"its answer":  "an answer",
	"back-off":    "their back-off, after failures",
	"its wish":    "the time that they requested",
}

func (h *crawlPages) curvesPart(c *crawl, r *http.Request) (*filled, error) {
	charts, err := c.charts(r)
	return &filled{"charts", charts}, err
}

const hostsShown = 100 // per page

func (h *crawlPages) hostsPage(c *crawl, r *http.Request) (*filled, error) {
	prefix, after := strings.TrimSpace(r.FormValue("prefix")), r.FormValue("after")
	if _, rest, has := strings.Cut(prefix, "://"); has {
		prefix = strings.TrimSuffix(rest, "/")
	}
	ranked := prefix+after == "" && r.FormValue("by") != "name"
	var p hostPage
	var err error
	if ranked {
		p, err = c.hosts.first(r.Context(), hostsShown)
	} else {
		p, err = c.hostsFrom(r.Context(), strings.ToLower(prefix), after, hostsShown)
	}
	if err != nil {
		return nil, err
	}
	o, err := c.status.overview(r.Context())
	if err != nil {
		return nil, err
	}
	head := h.out.top(c, "Hosts", "hosts")
	head.Again = p.Partial
	return &filled{"hosts", struct {
		top
		hostPage
		Prefix string
		Ranked bool
		Runs   bool
		Now    time.Time
	}{head, p, prefix, ranked, o.runs(), time.Now()}}, nil
}

func (h *crawlPages) hostPage(c *crawl, r *http.Request) (*filled, error) {
	x, err := c.hostAnswer(r, 100)
	if err != nil {
		return nil, err
	}
	o, err := c.status.overview(r.Context())
	if err != nil {
		return nil, err
	}
	head := h.out.top(c, x.Host.Key, "hosts")
	head.Again = x.Partial
	return &filled{"host", struct {
		top
		*hostAnswer
		Now  time.Time
		Runs bool
		For  string
	}{head, x, time.Now(), o.runs(), reasonText(x.Host.For)}}, nil
}

func (h *crawlPages) urlsPage(c *crawl, r *http.Request) (*filled, error) {
	asked := strings.TrimSpace(r.FormValue("url"))
	p := struct {
		top
		URL    string
		Fate   string
		X      *inspect.Explanation
		List   *urlPage
		Prefix string
		Runs   bool
		Now    time.Time
	}{top: h.out.top(c, "URLs", "urls"), URL: asked, Prefix: strings.TrimSpace(r.FormValue("prefix")), Now: time.Now()}
	var err error
	if asked != "" {
		if p.X, err = c.explain(r.Context(), asked); err != nil {
			return nil, err
		}
		if p.Fate = outcomeText[p.X.Fate]; p.X.Fate == inspect.Unread && p.X.Reading {
			p.Fate = "It is not in memory, and not all files have been read."
		}
		p.Again = p.X.Reading
		o, err := c.status.overview(r.Context())
		if err != nil {
			return nil, err
		}
		p.Runs = o.runs()
	} else {
		list, err := c.urlsFrom(r.Context(), p.Prefix, r.FormValue("after"), 100)
		if err != nil {
			return nil, err
		}
		p.List = &list
		p.Again = list.Partial
	}
	return &filled{"urls", p}, nil
}

// outcomeText explains the outcomes of URLs.
var outcomeText = map[inspect.Outcome]string{
	inspect.Unknown: "The crawl has not found it.", inspect.OutOfScope: "It is out of scope: links to it are only " +
		"counted.",
	inspect.Waiting: "It is in its host's queue.", inspect.Parked: "It is waiting for its host's robots.txt.",
	inspect.Retry:      "Its visit failed and will be retried.",
	inspect.InFlight:   "It is being visited now.",
	inspect.Undecided:  "It may be known already: the next merge of known URLs decides.",
	inspect.Fetched:    "It was fetched.",
	inspect.Redirected: "It was fetched, and redirects.",
	inspect.Duplicate:  "It was fetched, and is the same as an earlier page.",
	inspect.Error:      "It was fetched, and the answer is an error.", inspect.Failed: "It failed without an answer.",
	inspect.Abandoned:   "It was abandoned with its host, until the next run.",
	inspect.Deferred:    "It was deferred by a rule about links: a better link may still admit it.",
	inspect.Excluded:    "It was excluded by a rule.",
	inspect.Unaccounted: "It is being moved between queues: try again.",
	inspect.Claiming:    "A link to it is waiting to be sent to the nodes that remember its host.",
	inspect.Elsewhere:   "Another node fetches it.",
	inspect.Unread:      "The disk has not answered, and it is not in memory.",
}

func (h *crawlPages) recordsPage(c *crawl, r *http.Request) (*filled, error) {
	p := struct {
		top
		Records []lookup.Record
		Filter  lookup.Filter
		More    string
		First   bool
		Search  search
		// a filter is set that a narrow screen shows only on request
		Filtered bool
		Exports  bool
	}{top: h.out.top(c, "Pages", "pages"), Filter: filterOf(r), First: r.FormValue("cursor") == ""}
	p.Filtered = p.Filter.Status+p.Filter.Type+p.Filter.Lang+p.Filter.Day != ""
	if c.export != nil {
		o, err := c.status.overview(r.Context())
		if err != nil {
			return nil, err
		}
		p.Exports = !o.runs()
	}
	var next *int64
	if err := p.Search.run(c, r); err != nil {
		return nil, err
	}
	if p.Search.Found != nil {
		next = p.Search.Found.Next
	} else if p.Search.Wrong == "" || p.Search.Index == nil {
		list, err := c.records(r)
		if err != nil {
			return nil, err
		}
		p.Records, next = list.Records, list.Next
	}
	p.More = moreLink(r, next)
	return &filled{"pages", p}, nil
}

// moreLink returns a link to the next part of a page; "" if there is none.
func moreLink(r *http.Request, next *int64) string {
	if next == nil {
		return ""
	}
	q := r.URL.Query()
	q.Set("cursor", strconv.FormatInt(*next, 10))
	return "?" + q.Encode()
}

// excludedPage lists the URLs that a rule excluded.
func (h *crawlPages) excludedPage(c *crawl, r *http.Request) (*filled, error) {
	cursor, err := cursorOf(r)
	if err != nil {
		return nil, err
	}
	p := struct {
		top
		Rule  string
		URLs  []jsonl.SkipLine
		More  string
		First bool
	}{top: h.out.top(c, "Excluded", "urls"), Rule: r.FormValue("rule"), First: cursor == lookup.Last}
	var next int64
	if p.URLs, next, err = c.archive.Excluded(r.Context(), p.Rule, cursor, defaultLimit); err != nil {
		return nil, err
	}
	if next != 0 {
		p.More = "?" + url.Values{"rule": {p.Rule}, "cursor": {strconv.FormatInt(next, 10)}}.Encode()
	}
	return &filled{"excluded", p}, nil
}

// A search is the state of the full-text search on the page of pages.
type search struct {
	Words string
	Index *lookup.IndexState // nil: no index
	Wrong string             // error of the index, or of the query
	Found *lookup.Found      // nil: no query
	Clear string             // link to all pages
}

// run searches if there is a query.
func (x *search) run(c *crawl, r *http.Request) error {
	x.Words = strings.TrimSpace(r.FormValue("words"))
	x.Clear = "/crawls/" + url.PathEscape(c.name) + "/pages"
	state, err := c.archive.Index()
	switch {
	case err == nil:
		x.Index = &state
	case fulltext.IsDamaged(err):
		x.Wrong = err.Error()
	case !errors.Is(err, fulltext.ErrNoIndex):
		return err
	}
	if x.Index == nil || x.Words == "" {
		return nil
	}
	found, err := c.byIndex(r, x.Words, defaultLimit)
	if p, is := errors.AsType[*problem](err); is && p.Status == http.StatusBadRequest {
		x.Wrong = p.Detail
		return nil
	}
	x.Found = found
	return err
}

func (h *crawlPages) recordPage(r *http.Request) (*filled, error) {
	c, rec, err := h.crawls.record(r)
	if err != nil {
		return nil, err
	}
	p := struct {
		top
		R        *lookup.Record
		Show     string
		Headers  *headers
		Text     *lookup.Text
		Links    []lookup.Link
		All      int
		Archived string
		None     *problem
	}{top: h.out.top(c, cmp.Or(plain(cut(rec.Title, 80)), plain(cut(rec.URL, 80))), "pages"), R: rec,
		Show: r.FormValue("show")}
	if !slices.Contains([]string{"text", "links", "page"}, p.Show) {
		p.Show = "headers"
	}
	read := c.archive.Document
	if p.Show == "headers" {
		read = c.archive.Answer
	}
	resp, err := read(r.Context(), rec)
	switch {
	case err != nil:
	case p.Show == "headers":
		p.Headers = new(headersOf(resp))
	case p.Show == "text":
		p.Text, err = lookup.TextOf(resp)
	case p.Show == "links":
		p.Links, p.All, err = lookup.Links(resp, maxLimit)
	case p.Show == "page":
		p.Archived = h.archive.path(c, r) + "?id=" + strconv.FormatInt(rec.ID, 10)
	}
	if err != nil {
		p.None = problemOf(err)
	}
	return &filled{"record", p}, nil
}
