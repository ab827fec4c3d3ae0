package ui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"kumo/internal/app/inspect"
)

// A Starter starts crawls for users of the page. A StartError is displayed as it is.
type Starter interface {
	// Start starts a new crawl in a folder with the requested name.
	Start(ctx context.Context, s StartRequest) (Crawl, error)
	// Resume starts a crawl again that has ended, with the settings that are given.
	Resume(ctx context.Context, dir string, s StartRequest) error
	// Schedule returns when a crawl's pages are visited again; the zero Schedule: never.
	Schedule(dir string) (Schedule, error)
	// SetSchedule sets how often a crawl's pages are visited again; 0: never.
	SetSchedule(dir string, every time.Duration) error
}

// A StartRequest has the settings of a crawl in the form of flags; those that are empty are not given.
type StartRequest struct {
	Name                           string
	Seeds                          []string
	Scope, Depth, Include, Exclude string
	Limit, TimeLimit, Delay        string
	Embeds                         bool
}

// A Schedule says when a crawl's pages are visited again.
type Schedule struct {
	Every time.Duration
	Next  time.Time
}

// A StartError is the error message of a crawl that did not start.
type StartError struct{ Message string }

func (e *StartError) Error() string { return e.Message }

// starts serves the forms that start crawls and set their schedules. Its fields do not change.
type starts struct {
	crawls  *crawlSet
	starter Starter // nil: not allowed
	keys    *signer
	out     *responder
	log     *slog.Logger
}

func (h *starts) views() map[string]view {
	return map[string]view{
		"/start":                    h.newForm,
		"/crawls/{crawl}/start":     withPathTarget(h.find, h.resumeForm),
		"/crawls/{crawl}/recurring": withPathTarget(h.find, h.scheduleForm),
	}
}

var errStart = &problem{http.StatusForbidden, "Crawls cannot be started here",
	"kumo serve --allow-start=DIR allows it; otherwise use kumo crawl"}

// find returns the crawl in a path, if it can be started here.
func (h *starts) find(r *http.Request) (*crawl, error) {
	c, err := h.crawls.find(r)
	if err == nil && (h.starter == nil || c.cluster != nil) {
		err = errStart
	}
	return c, err
}

type startPage struct {
	top
	Given StartRequest
	Seeds string
	New   bool
	Token string
	Error *problem
}

// Scopes returns the names of the scopes with their meanings.
func (*startPage) Scopes() map[string]string {
	return map[string]string{"page": "page: only the seeds", "prefix": "prefix: below the seeds' paths",
		"host": "host: the seeds' hosts", "domain": "domain: also their subdomains and sister hosts",
		"any": "any: the whole web"}
}

func (h *starts) page(c *crawl, s StartRequest, err error) *startPage {
	p := &startPage{top: h.out.top(c, "Start a crawl", "overview"), Given: s, Seeds: strings.Join(s.Seeds, "\n"),
		New: c == nil, Token: h.keys.sign("act")}
	if c != nil {
		p.Title = "Resume the crawl"
	}
	if err != nil {
		if p.Error = problemOf(err); isStartError(err) {
			p.Error = &problem{http.StatusBadRequest, "The crawl did not start", err.Error()}
		}
	}
	return p
}

func isStartError(err error) bool {
	_, is := errors.AsType[*StartError](err)
	return is
}

func (h *starts) newForm(*http.Request) (*filled, error) {
	if h.starter == nil {
		return nil, errStart
	}
	return &filled{"start", h.page(nil, StartRequest{Scope: "host"}, nil)}, nil
}

func (h *starts) resumeForm(c *crawl, _ *http.Request) (*filled, error) {
	return &filled{"start", h.page(c, StartRequest{}, nil)}, nil
}

var crawlName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// request returns the settings in a form.
func (h *starts) request(r *http.Request) (s StartRequest, err error) {
	if err := h.checkForm(r); err != nil {
		return s, err
	}
	get := func(key string) string { return strings.TrimSpace(r.PostForm.Get(key)) }
	s = StartRequest{Name: get("name"), Scope: get("scope"), Depth: get("depth"), Include: get("include"),
		Exclude: get("exclude"), Limit: get("limit"), TimeLimit: get("time-limit"), Delay: get("delay"),
		Seeds: strings.Fields(get("seeds")), Embeds: get("embeds") == "yes"}
	return s, nil
}

func (h *starts) checkForm(r *http.Request) error {
	if err := r.ParseForm(); err != nil || !same(r.PostForm.Get("csrf"), h.keys.sign("act")) {
		return errOldForm
	}
	return nil
}

// submitNew starts a new crawl.
func (h *starts) submitNew(w http.ResponseWriter, r *http.Request) {
	s, err := h.request(r)
	switch {
	case h.starter == nil:
		h.out.fail(w, r, errStart)
		return
	case errors.Is(err, errOldForm):
		h.out.fail(w, r, err)
		return
	case !crawlName.MatchString(s.Name):
		err = badRequest("name is %q: expected letters, digits, dots, - and _", cut(s.Name, 100))
	default:
		_, err = readURLs(strings.Join(s.Seeds, "\n"))
	}
	var of Crawl
	if err == nil {
		of, err = h.starter.Start(r.Context(), s)
	}
	h.record(r, "start a crawl", s.Name, err)
	if err != nil {
		p := h.page(nil, s, err)
		h.out.render(w, p.Error.Status, "start", p)
		return
	}
	c := h.crawls.add(of)
	http.Redirect(w, r, "/crawls/"+url.PathEscape(c.name), http.StatusSeeOther)
}

// submitResume starts a crawl again.
func (h *starts) submitResume(w http.ResponseWriter, r *http.Request) {
	c, err := h.find(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	s, err := h.request(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	if o, statusErr := c.status.overview(r.Context()); statusErr == nil && o.runs() {
		err = &problem{http.StatusConflict, "The crawl is running", "its settings can be changed on its page"}
	} else {
		c.view.dropIdle() // the crawl needs its folder
		err = h.starter.Resume(r.Context(), c.dir, s)
	}
	c.status.invalidate()
	h.record(r, "resume", c.name, err)
	if err != nil {
		p := h.page(c, s, err)
		h.out.render(w, p.Error.Status, "start", p)
		return
	}
	http.Redirect(w, r, "/crawls/"+url.PathEscape(c.name), http.StatusSeeOther)
}

func (h *starts) record(r *http.Request, what, crawl string, err error) {
	if err != nil {
		h.log.Warn("web page: "+what+" failed", "crawl", cut(plain(crawl), 100), "from", remoteHost(r), "error", err.Error())
		return
	}
	h.log.Info("web page: "+what, "crawl", crawl, "from", remoteHost(r))
}

type schedulePage struct {
	top
	Schedule Schedule
	Every    string
	Token    string
	Error    *problem
}

func (h *starts) scheduleForm(c *crawl, _ *http.Request) (*filled, error) {
	s, err := h.starter.Schedule(c.dir)
	if err != nil {
		return nil, err
	}
	return &filled{"recurring", &schedulePage{top: h.out.top(c, "Recurring visits", "overview"), Schedule: s,
		Every: everyText(s.Every), Token: h.keys.sign("act")}}, nil
}

// everyText formats a time between visits as users write it.
func everyText(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

const leastEvery = time.Minute // between two visits of a schedule

// submitSchedule sets a schedule.
func (h *starts) submitSchedule(w http.ResponseWriter, r *http.Request) {
	c, err := h.find(r)
	if err == nil {
		err = h.checkForm(r)
	}
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	text, every := strings.TrimSpace(r.PostForm.Get("every")), time.Duration(0)
	if text != "" {
		if every, err = time.ParseDuration(text); err != nil || every < leastEvery {
			err = badRequest("%q: expected a time of at least %v with its unit: 30m, 24h or 168h", cut(text, 40), leastEvery)
		}
	}
	if err == nil {
		err = h.starter.SetSchedule(c.dir, every)
	}
	h.record(r, "set the schedule", c.name, err)
	if err != nil {
		p := &schedulePage{top: h.out.top(c, "Recurring visits", "overview"), Every: text, Token: h.keys.sign("act"),
			Error: problemOf(err)}
		h.out.render(w, p.Error.Status, "recurring", p)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/crawls/%s?done=schedule", url.PathEscape(c.name)), http.StatusSeeOther)
}

// scheduleText describes the schedule of a crawl; "" if it has none.
func (h *crawlPages) scheduleText(c *crawl, state inspect.State) string {
	if h.starter == nil || c.cluster != nil || c.dir == "" {
		return ""
	}
	s, err := h.starter.Schedule(c.dir)
	switch {
	case err != nil:
		return "The schedule cannot be read: " + err.Error()
	case s.Every == 0:
		return ""
	case state == inspect.Running:
		return "Pages are visited again every " + everyText(s.Every) + "."
	}
	return "Pages are visited again every " + everyText(s.Every) + ", next at " + clock(s.Next) + "."
}
