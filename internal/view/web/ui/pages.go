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
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/lookup"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/stats"
	"kumo/internal/state/forecast"
)

// pages are the views, by their paths.
func (s *Server) pages(mux *http.ServeMux) {
	for path, show := range map[string]func(*Server, http.ResponseWriter, *http.Request) error{
		"/{$}":                                      (*Server).front,
		"/crawls":                                   (*Server).listPage,
		"/crawls/{crawl}":                           (*Server).overviewPage,
		"/crawls/{crawl}/curves":                    (*Server).curvesPart,
		"/crawls/{crawl}/cluster":                   (*Server).clusterPage,
		"/crawls/{crawl}/cluster/part":              (*Server).clusterPart,
		"/crawls/{crawl}/hosts":                     (*Server).hostsPage,
		"/crawls/{crawl}/hosts/{host}":              (*Server).hostPage,
		"/crawls/{crawl}/urls":                      (*Server).urlsPage,
		"/crawls/{crawl}/excluded":                  (*Server).excludedPage,
		"/crawls/{crawl}/pages":                     (*Server).recordsPage,
		"/crawls/{crawl}/pages/{id}":                (*Server).recordPage,
		"/batches/{batch}":                          (*Server).collectionsPage,
		"/batches/{batch}/collections/{collection}": (*Server).collectionPage,
		aDay:                        (*Server).dayPage,
		aDay + "/page":              (*Server).batchRecordPage,
		"/experiments":              (*Server).experimentsPage,
		"/experiments/{experiment}": (*Server).experimentPage,
		"/experiments/{experiment}/tables/{table}": (*Server).tablePage,
		"/experiments/{experiment}/files/{file}":   (*Server).experimentFile,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := show(s, w, r); err != nil {
				s.failWithin(w, r, err)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &problem{http.StatusNotFound, "There is no such page", ""})
	})
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"show": show, "lines": showLines, "plain": plain, "typed": typed, "cut": cut, "grouped": func(n any) string {
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

// dict is what a template is given by a template: names and values in turn.
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

// clock is a time in UTC; a dash for none.
func clock(t time.Time) string {
	if t.IsZero() || t.Unix() <= 0 {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// in is how long it is until a time.
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

// top is what the head of each page needs.
type top struct {
	Title      string
	Crawl      string // in URLs; "": of none
	Folder     string
	Tab        string
	Many       bool   // there are other crawls
	Batch      string // the batch crawls' name in URLs; "": of none
	Experiment string // likewise
	HasCluster bool   // all nodes of it are shown, too
	Again      bool   // something is missing for a moment, after which the page is loaded again
}

func (s *Server) top(c *crawl, title, tab string) top {
	t := top{Title: title, Tab: tab, Many: len(s.crawls) > 1}
	if c != nil {
		t.Crawl, t.Folder, t.HasCluster = c.name, c.dir, c.cluster != nil
	}
	return t
}

// render writes a page whole, or says that it cannot.
func (s *Server) render(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name+".html", data); err != nil {
		s.cfg.Log.Error("web page", "page", name, "error", err.Error())
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who asked may have gone
}

// failWithin is fail for who may see the crawl or batch crawl that was asked: the page has the way back into its views.
func (s *Server) failWithin(w http.ResponseWriter, r *http.Request, err error) {
	t := s.top(s.named[r.PathValue("crawl")], "", "")
	if b, none := s.ofBatch(r); none == nil {
		t = s.topOf(b, "", "")
	}
	s.failUnder(w, r, err, t)
}

func (s *Server) failPage(w http.ResponseWriter, p *problem, head top) {
	head.Title = p.Title
	s.render(w, p.Status, "problem", struct {
		top
		Problem *problem
	}{head, p})
}

// front leads to the one crawl that there is, or to the list.
func (s *Server) front(w http.ResponseWriter, r *http.Request) error {
	to := "/crawls"
	switch {
	case len(s.crawls)+len(s.batches)+len(s.cfg.Experiments) > 1:
	case len(s.crawls) == 1:
		to += "/" + url.PathEscape(s.crawls[0].name)
		if s.crawls[0].cluster != nil {
			to += "/cluster"
		}
	case len(s.batches) == 1:
		to = "/batches/" + url.PathEscape(s.batches[0].name)
	case len(s.cfg.Experiments) == 1:
		to = "/experiments"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

func (s *Server) listPage(w http.ResponseWriter, r *http.Request) error {
	all, looking := s.entries(r.Context(), listWait), 0
	for i := range all {
		if all[i].Looking {
			looking++
		}
	}
	head := s.top(nil, "Crawls", "")
	head.Again = looking > 0
	s.render(w, http.StatusOK, "crawls", struct {
		top
		Crawls      []crawlEntry
		Batches     []batchEntry
		Experiments bool
		Looking     int
	}{head, all, s.batchEntries(r.Context()), len(s.cfg.Experiments) > 0, looking})
	return nil
}

// A count is a bar of a table.
type count struct {
	Name  string
	N     int64
	Of    int64 // of all
	Class string
	Link  string
}

const mostCounts = 12

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
	if len(all) > mostCounts {
		rest := count{Name: fmt.Sprintf("%d others", len(all)-mostCounts+1)}
		for _, c := range all[mostCounts-1:] {
			rest.N += c.N
		}
		all = append(all[:mostCounts-1], rest)
	}
	for i := range all {
		all[i].Of = sum
	}
	return all
}

func (s *Server) overviewPage(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	o, err := c.overview(r.Context())
	if err != nil {
		return err
	}
	charts, err := c.charts(r)
	if err != nil {
		return err
	}
	pages := "/crawls/" + url.PathEscape(c.name) + "/pages?"
	excluded := "/crawls/" + url.PathEscape(c.name) + "/excluded?rule="
	s.render(w, http.StatusOK, "overview", struct {
		top
		*Overview
		Live                            map[string]string
		Charts                          []chart
		All                             bool
		Done                            string
		ByStatus, ByType, ByError, Left []count
		Delays                          string
		Runs, Paused                    bool
	}{s.top(c, "Overview", "overview"), o, live(o), charts, !o.runs() || r.FormValue("span") == "all", doneWords(r),
		counts(o.Statuses, statusClass, func(k int) string { return pages + "status=" + strconv.Itoa(k) }),
		counts(o.Types, nil, func(k string) string { return pages + "type=" + url.QueryEscape(k) }),
		counts(o.Errors, func(string) string { return "bad" }, nil), counts(o.Skipped, nil, func(k string) string { return excluded + url.QueryEscape(k) }),
		c.waitsFor(r, o), o.runs(), o.State == inspect.Paused})
	return nil
}

// waitsFor says what the hosts wait for where most waits.
func (c *crawl) waitsFor(r *http.Request, o *Overview) string {
	if !o.runs() || o.Waiting == 0 {
		return ""
	}
	p, err := c.busiest(r.Context(), hostsShown)
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
		parts = append(parts, fmt.Sprintf("%d for %s", k.N, forWords(k.Name)))
	}
	return fmt.Sprintf("Of the %s where most waits: %s.", stats.Count(len(hosts), "hosts"), strings.Join(parts, ", "))
}

// forWords is what a host waits for, in a sentence.
func forWords(why string) string {
	switch why {
	case "a place":
		return "a free worker"
	case "delay":
		return "the crawl's delay"
	case "Crawl-delay":
		return "the Crawl-delay of their robots.txt"
	case "robots.txt":
		return "their robots.txt"
	case "its answer":
		return "an answer"
	case "back-off":
		return "a while, after failures"
	case "its wish":
		return "as long as they asked for"
	}
	return why
}

func (s *Server) curvesPart(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	charts, err := c.charts(r)
	if err != nil {
		return err
	}
	s.render(w, http.StatusOK, "charts", charts)
	return nil
}

const hostsShown = 100 // on a page

func (s *Server) hostsPage(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	prefix, after := strings.TrimSpace(r.FormValue("prefix")), r.FormValue("after")
	if _, rest, has := strings.Cut(prefix, "://"); has {
		prefix = strings.TrimSuffix(rest, "/")
	}
	ranked := prefix+after == "" && r.FormValue("by") != "name"
	var p hostPage
	if ranked {
		p, err = c.busiest(r.Context(), hostsShown)
	} else {
		p, err = c.hostsFrom(r.Context(), strings.ToLower(prefix), after, hostsShown)
	}
	if err != nil {
		return err
	}
	head := s.top(c, "Hosts", "hosts")
	head.Again = p.Partial
	s.render(w, http.StatusOK, "hosts", struct {
		top
		hostPage
		Prefix string
		Ranked bool
		Now    time.Time
	}{head, p, prefix, ranked, time.Now()})
	return nil
}

func (s *Server) hostPage(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	x, err := c.hostAnswer(r.Context(), r.PathValue("host"), 100)
	if err != nil {
		return err
	}
	o, err := c.overview(r.Context())
	if err != nil {
		return err
	}
	head := s.top(c, x.Host.Key, "hosts")
	head.Again = x.Partial
	s.render(w, http.StatusOK, "host", struct {
		top
		*hostAnswer
		Now  time.Time
		Runs bool
		For  string
	}{head, x, time.Now(), o.runs(), forWords(x.Host.For)})
	return nil
}

func (s *Server) urlsPage(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	asked := strings.TrimSpace(r.FormValue("url"))
	p := struct {
		top
		URL    string
		Fate   string
		X      *inspect.Explanation
		List   *urlPage
		Prefix string
		Now    time.Time
	}{top: s.top(c, "URLs", "urls"), URL: asked, Prefix: strings.TrimSpace(r.FormValue("prefix")), Now: time.Now()}
	if asked != "" {
		if p.X, err = c.explain(r.Context(), asked); err != nil {
			return err
		}
		if p.Fate = fateWords[p.X.Fate]; p.X.Fate == inspect.Unread && p.X.Reading {
			p.Fate = "Memory does not have it, and not all files are read."
		}
		p.Again = p.X.Reading
	} else {
		list, err := c.urlsFrom(r.Context(), p.Prefix, r.FormValue("after"), 100)
		if err != nil {
			return err
		}
		p.List = &list
		p.Again = list.Partial
	}
	s.render(w, http.StatusOK, "urls", p)
	return nil
}

// fateWords say how things stand with a URL.
var fateWords = map[inspect.Fate]string{
	inspect.Unknown: "The crawl has not met it.", inspect.OutOfScope: "It is out of scope: links to it are only counted.",
	inspect.Waiting: "It waits for its turn at its host.", inspect.Parked: "It waits: its host's robots.txt comes first.",
	inspect.Retry:      "It was visited without success, and is tried again.",
	inspect.UnderWay:   "It is being visited just now.",
	inspect.Undecided:  "It may have been met before: the next merge of known URLs tells.",
	inspect.Fetched:    "It was fetched.",
	inspect.Redirected: "It was fetched, and leads elsewhere.",
	inspect.Duplicate:  "It was fetched, and is the same as a page before.",
	inspect.Error:      "It was fetched, and the answer is an error.", inspect.Failed: "It got no answer, for good.",
	inspect.GivenUp:     "It was given up with its host, until the next run.",
	inspect.SetAside:    "It was set aside by a rule that speaks of links: a better one may still bring it in.",
	inspect.LeftOut:     "It was left out by a rule.",
	inspect.Unaccounted: "It is on its way from one place to another: ask again.",
	inspect.Claiming:    "A link to it waits until those nodes have it that remember its host.",
	inspect.Elsewhere:   "Another node is the one to fetch it.",
	inspect.Unread:      "The disk has not answered, and memory does not have it.",
}

func (s *Server) recordsPage(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	p := struct {
		top
		Records []lookup.Record
		Filter  lookup.Filter
		More    string
		First   bool
		Search  search
	}{top: s.top(c, "Pages", "pages"), Filter: filterOf(r), First: r.FormValue("cursor") == ""}
	var next *int64
	if err := p.Search.run(c, r); err != nil {
		return err
	}
	if p.Search.Found != nil {
		next = p.Search.Found.Next
	} else if p.Search.Wrong == "" || p.Search.Index == nil {
		list, err := c.records(r)
		if err != nil {
			return err
		}
		p.Records, next = list.Records, list.Next
	}
	if next != nil {
		q := r.URL.Query()
		q.Set("cursor", strconv.FormatInt(*next, 10))
		p.More = "?" + q.Encode()
	}
	s.render(w, http.StatusOK, "pages", p)
	return nil
}

// excludedPage lists the URLs that a rule has excluded.
func (s *Server) excludedPage(w http.ResponseWriter, r *http.Request) error {
	c, err := s.of(r)
	if err != nil {
		return err
	}
	cursor, err := cursorOf(r)
	if err != nil {
		return err
	}
	p := struct {
		top
		Rule  string
		URLs  []lookup.Excluded
		More  string
		First bool
	}{top: s.top(c, "Left out", "urls"), Rule: r.FormValue("rule"), First: cursor == lookup.Last}
	var next int64
	if p.URLs, next, err = c.archive.Excluded(r.Context(), p.Rule, cursor, usualLimit); err != nil {
		return err
	}
	if next != 0 {
		p.More = "?" + url.Values{"rule": {p.Rule}, "cursor": {strconv.FormatInt(next, 10)}}.Encode()
	}
	s.render(w, http.StatusOK, "excluded", p)
	return nil
}

// A search is what the view of pages has of the full-text index.
type search struct {
	Words string
	Index *lookup.IndexState // nil: there is none
	Wrong string             // with the index, or with what was asked
	Found *lookup.Found      // nil: nothing was looked for
	Clear string             // leads back to all pages
}

// run searches, if something is looked for.
func (x *search) run(c *crawl, r *http.Request) error {
	x.Words = strings.TrimSpace(r.FormValue("words"))
	x.Clear = "/crawls/" + url.PathEscape(c.name) + "/pages"
	state, err := c.archive.Index()
	switch {
	case err == nil:
		x.Index = &state
	case fulltext.IsDamaged(err):
		x.Wrong = err.Error()
	case !errors.Is(err, fulltext.ErrNone):
		return err
	}
	if x.Index == nil || x.Words == "" {
		return nil
	}
	found, err := c.byIndex(r, x.Words, usualLimit)
	if p, is := errors.AsType[*problem](err); is && p.Status == http.StatusBadRequest {
		x.Wrong = p.Detail
		return nil
	}
	x.Found = found
	return err
}

func (s *Server) recordPage(w http.ResponseWriter, r *http.Request) error {
	c, rec, err := s.recordOf(r)
	if err != nil {
		return err
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
	}{top: s.top(c, cmp.Or(plain(cut(rec.Title, 80)), plain(cut(rec.URL, 80))), "pages"), R: rec,
		Show: r.FormValue("show")}
	if !slices.Contains([]string{"text", "links", "page"}, p.Show) {
		p.Show = "headers"
	}
	resp, err := c.archive.Answer(r.Context(), rec)
	switch {
	case err != nil:
	case p.Show == "headers":
		h := headersOf(resp)
		p.Headers = &h
	case p.Show == "text":
		p.Text, err = lookup.TextOf(resp)
	case p.Show == "links":
		p.Links, p.All, err = lookup.Links(resp, maxLimit)
	case p.Show == "page":
		p.Archived = s.archivePath(c, r) + "?id=" + strconv.FormatInt(rec.ID, 10)
	}
	if err != nil {
		p.None = problemOf(err)
	}
	s.render(w, http.StatusOK, "record", p)
	return nil
}
