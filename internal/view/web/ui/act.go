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

// An action is what a person may have a crawl do: nothing that a command does not do as well.
type action struct {
	Name, Title string
	Says        string // what comes of it
	Field       string // what is to be said with it; "": nothing
	Example     string
	Lines       bool   // it is a list
	WantsHost   bool   // that is named with it
	Command     string // that does the same
	setting     string // whose present value is shown

	countsMatches bool                              // before it is done it is counted what of the URLs that wait it leaves out
	describe      func(actionInput) (string, error) // what is to be done, or what is wrong with it
	do            func(context.Context, target, actionInput) (addedCounts, error)
}

// actionInput is what a person has said with an action.
type actionInput struct{ Value, Host string }

// addedCounts is what came of an action that says it.
type addedCounts struct{ New, Of int }

var errNotControllable = &problem{http.StatusConflict, "This crawl cannot be changed here",
	"it does not run, or is a node's part of a crawl: kumo --help lists the commands"}

// A target is what has a crawl do something: all nodes of one that has several.
type target = inspect.ClusterController

// A viewTarget is a crawl of one node.
type viewTarget struct {
	inspect.Controller
	inspect.Setter
	dir string
}

// Tune is target's. The settings are those of the crawl's folder, as they were when it changed them last.
func (t viewTarget) Tune(ctx context.Context, f func(now map[string][]string) ([]inspect.Setting, error)) error {
	_, _, err := inspect.Tune(ctx, t, func() (map[string][]string, error) {
		all, err := settings.Read(filepath.Join(t.dir, settings.Name))
		return settings.Map(all), err
	}, f)
	return err
}

// withController calls f with what has the crawl do something for who asks.
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
	{Name: "pause", Title: "Pause", Says: "Nothing new is fetched until somebody resumes the crawl. Requests that are " +
		"under way are finished.",
		Command: "kumo pause -o FOLDER",
		do: func(ctx context.Context, s target, _ actionInput) (addedCounts, error) {
			return addedCounts{}, s.Pause(ctx, true)
		}},
	{Name: "resume", Title: "Resume", Says: "The crawl goes on.", Command: "kumo resume -o FOLDER",
		do: func(ctx context.Context, s target, _ actionInput) (addedCounts, error) {
			return addedCounts{}, s.Pause(ctx, false)
		}},
	{Name: "stop", Title: "Stop", Says: "The crawl ends in order, and this page with it if it is the crawl's own. The " +
		"same kumo crawl command goes on.",
		Command: "kumo stop -o FOLDER",
		do: func(ctx context.Context, s target, _ actionInput) (addedCounts, error) {
			return addedCounts{}, s.Stop(ctx)
		}},
	{Name: "add", Title: "Add URLs", Says: "They are fetched as seeds are, and are within the crawl's scope, as are " +
		"links on them.",
		Field: "URLs, one a line", Example: "https://example.com/", Lines: true, Command: "kumo add -o FOLDER URL...",
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
	{Name: "limit", Title: "Change the limit", Says: "The crawl stops after so many pages of all runs together; 0 is " +
		"no limit.",
		Field: "Pages", Example: "100000", Command: "kumo set -o FOLDER limit=N", setting: "limit",
		describe: func(g actionInput) (string, error) {
			n, err := strconv.ParseInt(g.Value, 10, 64)
			if err != nil || n < 0 {
				return "", badRequest("%q: a whole number of pages is wanted", cut(g.Value, 40))
			}
			return fmt.Sprintf("Stop after %d pages; 0 is no limit", n), nil
		},
		do: func(ctx context.Context, s target, g actionInput) (addedCounts, error) {
			return addedCounts{}, s.Tune(ctx, func(map[string][]string) ([]inspect.Setting, error) {
				return []inspect.Setting{{Key: "limit", Values: []string{g.Value}}}, nil
			})
		}},
	{Name: "delay", WantsHost: true, Title: "Change a host's delay", Says: "The crawl waits so long from the end of an " +
		"answer of the host to the next request; a longer Crawl-delay of its robots.txt holds as ever.",
		Field: "Delay", Example: "5s", Command: "kumo set -o FOLDER override='{match: {host: HOST}, delay: 5s}'",
		describe: func(g actionInput) (string, error) {
			if d, err := time.ParseDuration(g.Value); err != nil || d < 0 || d > 24*time.Hour {
				return "", badRequest("%q: a time of at most a day is wanted, with its unit: 500ms, 2s or 1m30s",
					cut(g.Value, 40))
			}
			if !hostName.MatchString(g.Host) {
				return "", badRequest("%q is no host", cut(g.Host, 100))
			}
			return fmt.Sprintf("Wait %s between requests to %s", g.Value, g.Host), nil
		},
		do: func(ctx context.Context, s target, g actionInput) (addedCounts, error) {
			return addedCounts{}, s.Tune(ctx, func(now map[string][]string) ([]inspect.Setting, error) {
				return withDelay(now["override"], g)
			})
		}},
	{Name: "block", Title: "Block a pattern", Says: "URLs that match are left out from now on, those that wait when " +
		"their turn comes; kumo explain names the rule. What is left out is not brought back when the rule is taken back.",
		Field: "A host, with its subdomains, or a /regular expression/", Example: "/[?&]sort=/",
		Command: "kumo block -o FOLDER RULE", setting: "block",
		countsMatches: true,
		describe: func(g actionInput) (string, error) {
			if _, err := policy.ParseBlocks([]string{g.Value}); err != nil || g.Value == "" {
				return "", badRequest("%q is no rule: a host or a /regular expression/ is wanted%s", cut(g.Value, 200),
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

// describeMatches is what of the URLs that wait a rule would leave out, in words: at all nodes, if there are several.
func (c *crawl) describeMatches(ctx context.Context, g actionInput) string {
	words, examples, err := c.countMatches(ctx, []string{g.Value})
	if err != nil {
		return "How many URLs that is cannot be counted now."
	}
	words = strings.ToUpper(words[:1]) + words[1:] + "."
	if len(examples) > 0 {
		words += " Some of them: " + cut(strings.Join(examples, "  "), 600)
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

const maxAdded = 1000 // URLs at once; kumo add takes more

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
		return nil, badRequest("there is no URL to add")
	case len(urls) > maxAdded:
		return nil, badRequest("%d URLs are more than are added at once here: kumo add -o FOLDER -i FILE takes a file",
			len(urls))
	}
	return urls, nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,300}$`)

// withDelay is what overrides there are, with a host's delay before them, in place of one that was given so before.
// Those with secrets a crawl's file does not have: they are not written again.
func withDelay(overrides []string, g actionInput) ([]inspect.Setting, error) {
	s := inspect.Setting{Key: "override", Values: []string{fmt.Sprintf("{match: {host: '%s'}, delay: %s}", g.Host,
		g.Value)}}
	for _, text := range overrides {
		var old map[string]any
		if err := yaml.Unmarshal([]byte(text), &old); err != nil || old["header"] != nil || old["proxy"] != nil {
			return nil, &problem{http.StatusConflict, "The crawl has overrides with secrets",
				"the page does not know them: give all overrides to kumo set, override=@FILE"}
		}
		if !isDelayOf(old, g.Host) {
			s.Values = append(s.Values, text)
		}
	}
	return []inspect.Setting{s}, nil
}

// isDelayOf reports whether an override is a delay of the one host, and nothing else.
func isDelayOf(o map[string]any, host string) bool {
	match, is := o["match"].(map[string]any)
	return is && len(o) == 2 && o["delay"] != nil && len(match) == 1 && match["host"] == host
}

// What an action's page shows.
type actPage struct {
	top
	Action *action
	Given  actionInput
	Sure   string // what is to be done, if that was said
	Now    string // what is set already
	Count  string // of URLs that it leaves out
	Token  string
	Error  *problem
}

// Command is what does the same on a command line.
func (p *actPage) Command() string {
	if p.HasCluster {
		return strings.Replace(p.Action.Command, "-o FOLDER", "--crawl NAME", 1)
	}
	return p.Action.Command
}

// controls serve the forms, and the REST, by which people and programs change a crawl: pause it, add URLs, and so on.
// Its fields do not change; any goroutine may use it.
type controls struct {
	crawls *crawlSet
	keys   *signer // of forms
	out    *responder
	log    *slog.Logger
}

// query returns the crawl and the action that a path names.
func (h *controls) find(r *http.Request) (*crawl, *action, error) {
	c, err := h.crawls.find(r)
	if err != nil {
		return nil, nil, err
	}
	a := actionNamed(r.PathValue("do"))
	if a == nil {
		return nil, nil, &problem{http.StatusNotFound, "There is nothing like that to do", ""}
	}
	return c, a, nil
}

// setNow is what a setting is in the crawl's folder; nil if it is not set, cannot be read, or is all nodes'.
func (c *crawl) setNow(key string) []string {
	if c.dir == "" || c.cluster != nil {
		return nil
	}
	all, _ := settings.Read(filepath.Join(c.dir, settings.Name)) // what is done does not depend on it
	return settings.Map(all)[key]
}

// form serves the page on which a person enters an action's value, or confirms an action without one.
func (h *controls) form(r *http.Request) (*filled, error) {
	c, a, err := h.find(r)
	if err != nil {
		return nil, err
	}
	if host := r.FormValue("host"); host != "" && !hostName.MatchString(host) {
		return nil, badRequest("%q is no host", cut(host, 100))
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

// submit asks for confirmation of a form, and performs its action once that is given.
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
		h.out.fail(w, r, &problem{http.StatusForbidden, "The form is too old",
			"go back, load its page again, and send it once more"})
		return
	}
	g := actionInput{strings.TrimSpace(r.PostForm.Get("value")), r.PostForm.Get("host")}
	p := actPage{top: h.out.top(c, a.Title, ""), Action: a, Given: g, Token: h.keys.sign("act"), Sure: a.Says}
	if a.describe != nil {
		if p.Sure, err = a.describe(g); err != nil {
			if p.Sure, p.Error = "", problemOf(err); !hostName.MatchString(g.Host) {
				p.Given.Host = "" // it is to be said once more
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
func (h *controls) perform(r *http.Request, c *crawl, a *action, g actionInput, sure string) (d addedCounts, err error) {
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

// actProblem tells an error of a crawl as what it is: its own words.
func actProblem(err error) *problem {
	if p := problemOf(err); p.Status != http.StatusInternalServerError {
		return p
	}
	return &problem{http.StatusConflict, "The crawl did not do it", err.Error()}
}

// doneText say what was done, by what a URL says of it.
func doneText(r *http.Request) string {
	a := actionNamed(r.FormValue("done"))
	if a == nil {
		return ""
	}
	if a.Name != "add" {
		return "Done: " + strings.ToLower(a.Title[:1]) + a.Title[1:]
	}
	n, _ := strconv.Atoi(r.FormValue("n"))
	of, _ := strconv.Atoi(r.FormValue("of"))
	return fmt.Sprintf("Done: %s added, %d of them new", stats.Count(of, "URLs"), n)
}

// actPath is where programs have a crawl do something, below /api/v1.
const actPath = "/crawls/{crawl}/actions/{do}"

// A wish is what a program wants a crawl to do.
type wish struct {
	Value string `json:"value,omitempty"` // of an action that wants one: URLs, a line each; pages; a delay; a pattern
	Host  string `json:"host,omitempty"`  // of a host's delay
	Sure  bool   `json:"sure,omitempty"`  // without it is only said what would be done
}

// A deed is what came of a wish.
type deed struct {
	Done bool   `json:"done"`
	Says string `json:"says"`          // what was done, or would be
	New  int    `json:"new,omitempty"` // of URLs that were added, those that were new
}

// serveAPI performs actions for programs. Pages of other sites cannot have a browser send JSON here.
func (h *controls) serveAPI(w http.ResponseWriter, r *http.Request) {
	d, err := h.decode(r)
	if err != nil {
		h.out.fail(w, r, actProblem(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(d) // who asked may have gone
}

func (h *controls) decode(r *http.Request) (*deed, error) {
	c, a, err := h.find(r)
	if err != nil {
		return nil, err
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &problem{http.StatusUnsupportedMediaType, "Not JSON",
			"say it in JSON, with Content-Type: application/json"}
	}
	var x wish
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&x); err != nil {
		return nil, badRequest("the wish cannot be read: %v", err)
	}
	g := actionInput{strings.TrimSpace(x.Value), x.Host}
	switch {
	case a.Field == "" && x.Value != "":
		return nil, badRequest("%s wants no value", a.Name)
	case !a.WantsHost && x.Host != "":
		return nil, badRequest("%s wants no host", a.Name)
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
