package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/base/yaml"
	"kumo/internal/content/policy"
)

// An action is a change that a user can make to a crawl. Each has an equivalent command.
type action struct {
	Name, Title string
	Says        string // its effect
	Field       string // label of its value; "": it has no value
	Example     string
	Lines       bool   // the value is a list
	WantsHost   bool   // it applies to a host
	Command     string // the equivalent command
	setting     string // key of the setting whose current value is shown

	countsMatches bool // before it is applied, show which pending URLs it excludes
	// describes the effect, or returns an error for an invalid value
	describe func(actionInput) (string, error)
	do       func(context.Context, target, actionInput) (addedCounts, error)
}

// actionInput is the user's input for an action.
type actionInput struct{ Value, Host string }

// addedCounts is the result of adding URLs; zero for other actions.
type addedCounts struct{ New, Of int }

var errNotControllable = &problem{http.StatusConflict, "This crawl cannot be changed here",
	"it is not running, or it is one node of a cluster: see kumo --help for the commands"}

// A target controls a crawl; in a cluster, all of its nodes.
type target = inspect.ClusterController

// A viewTarget controls a crawl of one node.
type viewTarget struct {
	inspect.Controller
	inspect.Setter
	dir string
}

// Tune implements target. It reads the current settings from the crawl's folder.
func (t viewTarget) Tune(ctx context.Context, f func(now map[string][]string) ([]inspect.Setting, error)) error {
	_, _, err := inspect.Tune(ctx, t, func() (map[string][]string, error) {
		all, err := settings.Read(filepath.Join(t.dir, settings.Name))
		return settings.Map(all), err
	}, f)
	return err
}

// withController calls f with the controller of the crawl, on behalf of the requesting client.
func (c *crawl) withController(r *http.Request, f func(target) error) error {
	if c.cluster != nil {
		err := f(c.cluster.src.As("the web page" + c.cluster.where + ", from " + remoteHost(r)))
		c.cluster.invalidate()
		return err
	}
	return c.view.use(r.Context(), func(v *inspect.View) error {
		st, can := v.Source.(inspect.Controller)
		setter, may := v.Source.(inspect.Setter)
		if !can || !may || !v.Running() {
			return errNotControllable
		}
		return f(viewTarget{st, setter, c.dir})
	})
}

var actions = []action{
	{Name: "pause", Title: "Pause", Says: "Nothing new is fetched until the crawl is resumed. Requests that are " +
		"active are finished.",
		Command: "kumo pause -o FOLDER",
		do: func(ctx context.Context, s target, _ actionInput) (addedCounts, error) {
			return addedCounts{}, s.Pause(ctx, true)
		}},
	{Name: "resume", Title: "Resume", Says: "The crawl resumes.", Command: "kumo resume -o FOLDER",
		do: func(ctx context.Context, s target, _ actionInput) (addedCounts, error) {
			return addedCounts{}, s.Pause(ctx, false)
		}},
	{Name: "stop", Title: "Stop", Says: "The crawl ends in order, and this page with it if the crawl serves it. The " +
		"same kumo crawl command resumes it.",
		Command: "kumo stop -o FOLDER",
		do: func(ctx context.Context, s target, _ actionInput) (addedCounts, error) {
			return addedCounts{}, s.Stop(ctx)
		}},
	{Name: "add", Title: "Add URLs", Says: "They are fetched like seeds and are in the crawl's scope, as are " +
		"links on them.",
		Field: "URLs, one per line", Example: "https://example.com/", Lines: true, Command: "kumo add -o FOLDER URL...",
		describe: func(g actionInput) (string, error) {
			urls, err := readURLs(g.Value)
			return fmt.Sprintf("Add %s: %s", stats.Count(len(urls), "URLs"), cut(strings.Join(urls, "  "), 1000)), err
		},
		do: func(ctx context.Context, s target, g actionInput) (addedCounts, error) {
			urls, err := readURLs(g.Value)
			if err != nil {
				return addedCounts{}, err
			}
			news, err := s.Add(ctx, urls)
			return addedCounts{news, len(urls)}, err
		}},
	{Name: "limit", Title: "Change the limit", Says: "The crawl stops after this number of pages in all runs; 0 " +
		"means no limit.",
		Field: "Pages", Example: "100000", Command: "kumo set -o FOLDER limit=N", setting: "limit",
		describe: func(g actionInput) (string, error) {
			n, err := strconv.ParseInt(g.Value, 10, 64)
			if err != nil || n < 0 {
				return "", badRequest("%q: expected a whole number of pages", cut(g.Value, 40))
			}
			return fmt.Sprintf("Stop after %d pages; 0 means no limit", n), nil
		},
		do: func(ctx context.Context, s target, g actionInput) (addedCounts, error) {
			return addedCounts{}, s.Tune(ctx, func(map[string][]string) ([]inspect.Setting, error) {
				return []inspect.Setting{{Key: "limit", Values: []string{g.Value}}}, nil
			})
		}},
	{Name: "delay", WantsHost: true, Title: "Change a host's delay", Says: "The crawl waits this long from the end " +
		"of an answer of the host to the next request; a longer Crawl-delay in its robots.txt still applies.",
		Field: "Delay", Example: "5s", Command: "kumo set -o FOLDER override='{match: {host: HOST}, delay: 5s}'",
		describe: func(g actionInput) (string, error) {
			if d, err := time.ParseDuration(g.Value); err != nil || d < 0 || d > 24*time.Hour {
				return "", badRequest("%q: expected a time of at most a day with its unit: 500ms, 2s or 1m30s",
					cut(g.Value, 40))
			}
			if !hostName.MatchString(g.Host) {
				return "", badRequest("%q is not a host", cut(g.Host, 100))
			}
			return fmt.Sprintf("Wait %s between requests to %s", g.Value, g.Host), nil
		},
		do: func(ctx context.Context, s target, g actionInput) (addedCounts, error) {
			return addedCounts{}, s.Tune(ctx, func(now map[string][]string) ([]inspect.Setting, error) {
				return withDelay(now["override"], g)
			})
		}},
	{Name: "block", Title: "Block a pattern", Says: "URLs that match are excluded from now on; pending ones when " +
		"they are dequeued. kumo explain names the rule. Removing the rule does not bring excluded URLs back.",
		Field: "A host, with its subdomains, or a /regular expression/", Example: "/[?&]sort=/",
		Command: "kumo block -o FOLDER RULE", setting: "block",
		countsMatches: true,
		describe: func(g actionInput) (string, error) {
			if _, err := policy.ParseBlocks([]string{g.Value}); err != nil || g.Value == "" {
				return "", badRequest("%q is not a rule: expected a host or a /regular expression/%s", cut(g.Value,
					200),
					because(err))
			}
			return "Leave out " + g.Value, nil
		},
		do: func(ctx context.Context, s target, g actionInput) (addedCounts, error) {
			return addedCounts{}, s.Tune(ctx, func(now map[string][]string) ([]inspect.Setting, error) {
				rules := slices.DeleteFunc(slices.Clone(now["block"]), func(r string) bool { return r == g.Value })
				return []inspect.Setting{{Key: "block", Values: append(rules, g.Value)}}, nil
			})
		}},
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// describeMatches describes the pending URLs that a rule would exclude, at all nodes.
func (c *crawl) describeMatches(ctx context.Context, g actionInput) string {
	words, examples, err := c.countMatches(ctx, []string{g.Value})
	if err != nil {
		return "The affected URLs cannot be counted now."
	}
	words = strings.ToUpper(words[:1]) + words[1:] + "."
	if len(examples) > 0 {
		words += " Examples: " + cut(strings.Join(examples, "  "), 600)
	}
	return words
}

func (c *crawl) countMatches(ctx context.Context, rules []string) (words string, examples []string, err error) {
	if c.cluster != nil {
		b, err := c.cluster.src.BlockedAll(ctx, rules)
		if err != nil {
			return "", nil, err
		}
		return b.Words(), b.Examples, nil
	}
	err = c.view.use(ctx, func(v *inspect.View) error {
		src, can := v.Source.(inspect.BlockCounter)
		if !can {
			return errNotControllable
		}
		b, err := src.Blocked(ctx, rules)
		if err == nil {
			words, examples = b.Words(), b.Examples
		}
		return err
	})
	return words, examples, err
}

func actionNamed(name string) *action {
	i := slices.IndexFunc(actions, func(a action) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &actions[i]
}

const maxAdded = 1000 // maximum here; kumo add accepts more

func readURLs(text string) (urls []string, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		u, err := weburl.Parse(line)
		if err != nil || u.Host() == "" {
			return nil, noURL(line)
		}
		urls = append(urls, line)
	}
	switch {
	case len(urls) == 0:
		return nil, badRequest("no URLs to add")
	case len(urls) > maxAdded:
		return nil, badRequest("%d URLs are too many to add here: use kumo add -o FOLDER -i FILE",
			len(urls))
	}
	return urls, nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,300}$`)

// withDelay puts a host's delay before the current overrides, and replaces an earlier delay set here. Overrides with
// secrets cannot be changed: the crawl's file does not contain them.
func withDelay(overrides []string, g actionInput) ([]inspect.Setting, error) {
	s := inspect.Setting{Key: "override", Values: []string{fmt.Sprintf("{match: {host: '%s'}, delay: %s}", g.Host,
		g.Value)}}
	for _, text := range overrides {
		var old map[string]any
		if err := yaml.Unmarshal([]byte(text), &old); err != nil || old["header"] != nil || old["proxy"] != nil {
			return nil, &problem{http.StatusConflict, "The crawl has overrides with secrets",
				"this page cannot read them: set all overrides with kumo set, override=@FILE"}
		}
		if !isDelayOf(old, g.Host) {
			s.Values = append(s.Values, text)
		}
	}
	return []inspect.Setting{s}, nil
}

// isDelayOf reports whether an override sets only the delay of this host.
func isDelayOf(o map[string]any, host string) bool {
	match, is := o["match"].(map[string]any)
	return is && len(o) == 2 && o["delay"] != nil && len(match) == 1 && match["host"] == host
}

// An actPage is the data of an action's page.
type actPage struct {
	top
	Action *action
	Given  actionInput
	Sure   string // the effect, if confirmation is needed
	Now    string // current value of the setting
	Count  string // description of the pending URLs that it excludes
	Token  string
	Error  *problem
}

// Command returns the equivalent command.
func (p *actPage) Command() string {
	if p.HasCluster {
		return strings.Replace(p.Action.Command, "-o FOLDER", "--crawl NAME", 1)
	}
	return p.Action.Command
}

// controls serves the forms and the REST API for changing a crawl: pause it, add URLs, and so on. Its fields do not
// change; any goroutine may use it.
type controls struct {
	crawls *crawlSet
	keys   *signer // for forms
	out    *responder
	log    *slog.Logger
}

// find returns the crawl and the action in a path.
func (h *controls) find(r *http.Request) (*crawl, *action, error) {
	c, err := h.crawls.find(r)
	if err != nil {
		return nil, nil, err
	}
	a := actionNamed(r.PathValue("do"))
	if a == nil {
		return nil, nil, &problem{http.StatusNotFound, "There is no such action", ""}
	}
	return c, a, nil
}

// setNow returns the value of a setting in the crawl's folder; nil if it is not set, cannot be read, or belongs to a
// cluster.
func (c *crawl) setNow(key string) []string {
	if c.dir == "" || c.cluster != nil {
		return nil
	}
	all, _ := settings.Read(filepath.Join(c.dir, settings.Name)) // only for display
	return settings.Map(all)[key]
}

// form serves the page on which a person enters an action's value, or confirms an action without one.
func (h *controls) form(r *http.Request) (*filled, error) {
	c, a, err := h.find(r)
	if err != nil {
		return nil, err
	}
	if host := r.FormValue("host"); host != "" && !hostName.MatchString(host) {
		return nil, badRequest("%q is not a host", cut(host, 100))
	}
	p := actPage{top: h.out.top(c, a.Title, ""), Action: a, Given: actionInput{"", r.FormValue("host")},
		Token: h.keys.sign("act")}
	if a.Field == "" {
		p.Sure = a.Says
	}
	if a.setting != "" {
		p.Now = cut(strings.Join(c.setNow(a.setting), ", "), 1000)
	}
	return &filled{"act", &p}, nil
}

var errOldForm = &problem{http.StatusForbidden, "The form is too old", "go back, reload its page, and submit it again"}

// submit asks for confirmation of a form, and performs its action once confirmed.
func (h *controls) submit(w http.ResponseWriter, r *http.Request) {
	c, a, err := h.find(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	if err := r.ParseForm(); err != nil {
		h.out.fail(w, r, badRequest("the form cannot be read: %v", err))
		return
	}
	if !same(r.PostForm.Get("csrf"), h.keys.sign("act")) {
		h.out.fail(w, r, errOldForm)
		return
	}
	g := actionInput{strings.TrimSpace(r.PostForm.Get("value")), r.PostForm.Get("host")}
	p := actPage{top: h.out.top(c, a.Title, ""), Action: a, Given: g, Token: h.keys.sign("act"), Sure: a.Says}
	if a.describe != nil {
		if p.Sure, err = a.describe(g); err != nil {
			if p.Sure, p.Error = "", problemOf(err); !hostName.MatchString(g.Host) {
				p.Given.Host = "" // let the user correct it
			}
			h.out.render(w, http.StatusBadRequest, "act", &p)
			return
		}
	}
	if r.PostForm.Get("sure") != "yes" {
		if a.countsMatches {
			p.Count = c.describeMatches(r.Context(), g)
		}
		h.out.render(w, http.StatusOK, "act", &p)
		return
	}
	d, err := h.perform(r, c, a, g, p.Sure)
	if err != nil {
		p.Error = actProblem(err)
		h.out.render(w, p.Error.Status, "act", &p)
		return
	}
	if a.Name == "stop" {
		h.out.render(w, http.StatusOK, "ends", &p)
		return
	}
	to := "/crawls/" + url.PathEscape(c.name)
	if c.cluster != nil {
		to += "/cluster"
	}
	http.Redirect(w, r, fmt.Sprintf("%s?done=%s&n=%d&of=%d", to, a.Name, d.New, d.Of), http.StatusSeeOther)
}

// perform performs an action, and logs it.
func (h *controls) perform(r *http.Request, c *crawl, a *action, g actionInput, sure string) (d addedCounts,
	err error) {
	err = c.withController(r, func(t target) (err error) {
		d, err = a.do(r.Context(), t, g)
		return err
	})
	log := []any{"crawl", c.name, "from", remoteHost(r)}
	if a.Field != "" {
		log = append(log, "value", cut(plain(sure), 300))
	}
	if err != nil && !(a.Name == "stop" && errors.Is(err, inspect.ErrUnreachable)) {
		h.log.Warn("web page: "+a.Name+" failed", append(log, "error", err.Error())...)
		return d, err
	}
	h.log.Info("web page: "+a.Name, log...)
	c.status.invalidate()
	return d, nil
}

// actProblem converts an error of an action.
func actProblem(err error) *problem {
	if p := problemOf(err); p.Status != http.StatusInternalServerError {
		return p
	}
	return &problem{http.StatusConflict, "The action failed", err.Error()}
}

// doneText describes the completed action in a URL.
func doneText(r *http.Request) string {
	a := actionNamed(r.FormValue("done"))
	switch {
	case r.FormValue("done") == "schedule":
		return "Done: the schedule is saved"
	case a == nil:
		return ""
	}
	if a.Name != "add" {
		return "Done: " + strings.ToLower(a.Title[:1]) + a.Title[1:]
	}
	n, _ := strconv.Atoi(r.FormValue("n"))
	of, _ := strconv.Atoi(r.FormValue("of"))
	return fmt.Sprintf("Done: %s added, %d of them new", stats.Count(of, "URLs"), n)
}

// actPath is the path of actions below /api/v1.
const actPath = "/crawls/{crawl}/actions/{do}"

// A wish is a program's request for an action.
type wish struct {
	Value string `json:"value,omitempty"` // of actions with a value: URLs, one per line; pages; a delay; a pattern
	Host  string `json:"host,omitempty"`  // for a host's delay
	Sure  bool   `json:"sure,omitempty"`  // without it, only describe what would be done
}

// A deed is the answer to a wish.
type deed struct {
	Done bool   `json:"done"`
	Says string `json:"says"`          // the effect, done or possible
	New  int    `json:"new,omitempty"` // number of added URLs that were new
}

// serveAPI performs actions for programs. It requires JSON, which a browser cannot send on behalf of other sites.
func (h *controls) serveAPI(w http.ResponseWriter, r *http.Request) {
	d, err := h.decode(r)
	if err != nil {
		h.out.fail(w, r, actProblem(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(d) // the client may have disconnected
}

func (h *controls) decode(r *http.Request) (*deed, error) {
	c, a, err := h.find(r)
	if err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &problem{http.StatusUnsupportedMediaType, "Not JSON",
			"send JSON, with Content-Type: application/json"}
	}
	var x wish
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&x); err != nil {
		return nil, badRequest("the request cannot be read: %v", err)
	}
	g := actionInput{strings.TrimSpace(x.Value), x.Host}
	switch {
	case a.Field == "" && x.Value != "":
		return nil, badRequest("%s takes no value", a.Name)
	case !a.WantsHost && x.Host != "":
		return nil, badRequest("%s takes no host", a.Name)
	}
	d := &deed{Says: a.Says}
	if a.describe != nil {
		if d.Says, err = a.describe(g); err != nil {
			return nil, err
		}
	}
	if !x.Sure {
		if a.countsMatches {
			d.Says += ". " + c.describeMatches(r.Context(), g)
		}
		return d, nil
	}
	came, err := h.perform(r, c, a, g, d.Says)
	if err != nil {
		return nil, err
	}
	d.Done, d.New = true, came.New
	if a.Name == "add" {
		d.Says = fmt.Sprintf("%d added, %d of them new", came.Of, came.New)
	}
	return d, nil
}
