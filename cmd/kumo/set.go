package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/desired"
)

const setLong = `Show the settings of a crawl, or change some of them while it runs: those that all nodes of a crawl
share (--crawl NAME), or those of a crawl on this machine (--out FOLDER).

Without KEY=VALUE it lists the settings, and when each may change: at any time, when the nodes start
(kumo stop, then kumo start or kumo set), or never, because earlier decisions of the crawl depend on
it. The keys are the names of kumo start's flags. An empty value (contact=) removes a setting.

All nodes apply a change within a few seconds, also to hosts that are waiting. It is saved: nodes
that join or start later have it, and each writes it to its config.yaml. Settings of one machine
(--concurrency, --memory, --max-rate and others of kumo node) are not shared: restart the node with
other flags.`

const setExample = `  kumo set --crawl news
  kumo set --crawl news delay=2s
  kumo set -o crawls/news delay=2s limit=5000
  kumo set -o crawls/news override='{match: slow.example.com, delay: 10s}'
  kumo set -o crawls/news override=@overrides.yaml
  kumo set --crawl news delay=500ms ip-delay=0 limit=100000 contact=https://me.example/bot`

func setCommand() *cobra.Command {
	c := &clusterFlags{}
	asJSON, dir := false, ""
	cmd := &cobra.Command{Use: "set (--crawl NAME | -o FOLDER) [KEY=VALUE...]", Short: "Show a crawl's settings, or " +
		"change them while it runs", Long: setLong, Example: setExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			wishes, err := parseChanges(args)
			if err != nil {
				return err
			}
			if dir != "" {
				if err := (&localCrawl{dir}).check(cmd.Flags()); err != nil {
					return err
				}
				return setIn(cmd.Context(), cmd.OutOrStdout(), dir, wishes, asJSON)
			}
			if err := checkSecrets(wishes); err != nil {
				return err
			}
			open := c.control
			if len(wishes) == 0 {
				open = c.view
			}
			return open(cmd.Context(), cmd.ErrOrStderr(), func(ctx context.Context, control admin.Client) error {
				if len(wishes) == 0 {
					return c.showSettings(ctx, cmd.OutOrStdout(), control, asJSON)
				}
				return c.set(ctx, cmd, control, wishes)
			})
		}}
	c.bindCommand(cmd.Flags())
	cmd.Flags().StringVarP(&dir, "out", "o", "", "a crawl on this machine, by its `FOLDER`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object per line")
	cmd.Flags().SortFlags = false
	return cmd
}

// settable returns the names of settings that nodes share and that are stored with the crawl.
func settable() []string {
	return setting.Keys(func(s *setting.Setting) bool { return s.Scope == setting.Crawl && s.Change != setting.PerRun })
}

// parseChanges parses KEY=VALUE, each like the flag of that name. It checks only keys and values.
func parseChanges(args []string) ([]settings.Setting, error) {
	o := &options{}
	all := crawlFlags(o)
	var wishes []settings.Setting
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		key = strings.TrimPrefix(key, "--")
		if !ok {
			return nil, usagef("%q: want KEY=VALUE, such as delay=2s; without arguments, kumo set lists all settings", arg)
		}
		if err := checkKey(all, key); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(wishes, func(s settings.Setting) bool { return s.Key == key }) {
			return nil, usagef("%s is given twice", key)
		}
		s := settings.Setting{Key: key}
		if value != "" {
			if err := all.Set(key, value); err != nil {
				return nil, badValue(all.Lookup(key), value, err)
			}
			s.Values = settingOf(all.Lookup(key)).Values
		}
		wishes = append(wishes, s)
	}
	if err := o.finish(); err != nil {
		return nil, err
	}
	for i := range wishes {
		if wishes[i].Key == job.FieldsKey && len(wishes[i].Values) > 0 {
			wishes[i].Values = []string{o.rulesText} // as kumo start stores it
		}
	}
	return wishes, nil
}

func checkKey(all *pflag.FlagSet, key string) error {
	known := settable()
	switch {
	case slices.Contains(known, key):
		return nil
	case hasScope(key, setting.Node):
		return usagef("%s is a setting of one machine, which nodes do not share: start the node again with another --%s", key,
			key)
	case all.Lookup(key) != nil:
		return usagef("%s is not a setting that nodes share; settings that may change while the crawl runs: %s", key,
			strings.Join(setting.LiveKeys(), ", "))
	}
	text := fmt.Sprintf("there is no setting %q", key)
	if near := advice.Nearest(key, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return usagef("%s; these may change while a crawl runs: %s", text, strings.Join(setting.LiveKeys(), ", "))
}

// badValue returns the error for an invalid value.
func badValue(f *pflag.Flag, value string, err error) error {
	switch f.Value.Type() {
	case "duration":
		return usagef("%s=%s: a time is wanted, with its unit: 500ms, 2s or 1m30s", f.Name, value)
	case "int", "int64":
		return usagef("%s=%s: a whole number is wanted", f.Name, value)
	}
	if f.Name == job.OverrideKey {
		return usagef("%s: %v", f.Name, errors.Unwrap(err))
	}
	return usagef("%s=%s: %v", f.Name, value, err)
}

// A changeTime is when a setting may change.
type changeTime string

const (
	mayAlways  changeTime = "any time"
	mayStopped changeTime = "stopped"
	mayNever   changeTime = "never"
)

// mayChange returns when a setting may change, and why not at any time.
func mayChange(key string) (may changeTime, why string) {
	switch s := setting.Find(key); {
	case s.Change == setting.Live:
		return mayAlways, ""
	case s.Lasting() && key != job.FieldsKey: // new rules apply to pages fetched from then on
		return mayNever, "URLs have been excluded, stored or named by it: start another crawl"
	}
	return mayStopped, "nodes read it at startup: kumo stop, start the nodes again, then kumo set or kumo start " +
		"with it"
}

func (c *clusterFlags) set(ctx context.Context, cmd *cobra.Command, control admin.Client,
	wishes []settings.Setting) error {
	var was map[string][]string
	var state desired.State
	err := control.Tune(ctx, func(r desired.Record) ([]settings.Setting, error) {
		was, state = maps.Clone(r.Settings), r.State
		return checkChanges(r, wishes)
	})
	if err != nil {
		return cluster.Advise(err)
	}
	var said []string
	for _, s := range wishes {
		before := settings.Setting{Key: s.Key, Values: was[s.Key]}
		if s.Equal(before) {
			said = append(said, fmt.Sprintf("%s is %s already", s.Key, valueOf(s.Key, s.Values)))
		} else {
			said = append(said, fmt.Sprintf("%s is %s now, was %s", s.Key, valueOf(s.Key, s.Values),
				valueOf(s.Key, before.Values)))
		}
	}
	then := "all nodes go by it within seconds"
	if state == desired.Stopping || state == desired.Done {
		then = "all nodes go by it from the next kumo start on"
	}
	c.warnUnsent(ctx, cmd.ErrOrStderr(), control, was[job.SinkKey], wishes)
	return c.printDone(cmd.OutOrStdout(), strings.Join(said, "; ")+"; "+then)
}

// warnUnsent warns if a crawl gets a sink, and nodes have left or were lost before: nobody sends their records to it.
func (c *clusterFlags) warnUnsent(ctx context.Context, w io.Writer, control admin.Client, was []string,
	changes []settings.Setting) {
	i := slices.IndexFunc(changes, func(s settings.Setting) bool { return s.Key == job.SinkKey })
	if i < 0 {
		return
	}
	added := slices.DeleteFunc(slices.Clone(changes[i].Values), func(u string) bool { return slices.Contains(was, u) })
	if len(added) == 0 {
		return
	}
	all, err := control.Cluster(ctx, c.crawl)
	if err != nil {
		return // the settings are changed; kumo status shows the error
	}
	n, pages := int64(all.Gone.Nodes), all.Gone.Pages
	for i := range all.Nodes { // some are still listed
		if one := &all.Nodes[i]; one.Is == inspect.NodeLeft || one.Is == inspect.NodeDead {
			n, pages = n+1, pages+one.Pages
		}
	}
	if pages == 0 {
		return
	}
	for _, sink := range added {
		fmt.Fprintf(w, "kumo: %s %s left or %s lost, and nobody sends the records of %s %s to the new sink: "+
			"kumo export --to %s FOLDER sends them, for each of their folders or storage locations\n",
			stats.Count(n, "nodes"), stats.Either(n, "has", "have"), stats.Either(n, "was", "were"),
			stats.Either(n, "its", "their"), stats.Count(pages, "pages"), sink)
	}
}

// checkChanges returns an error if a setting cannot change now; otherwise it returns the changes to make.
func checkChanges(r desired.Record, wishes []settings.Setting) ([]settings.Setting, error) {
	idle := r.State == desired.Stopping || r.State == desired.Done
	for _, s := range wishes {
		may, why := mayChange(s.Key)
		same := s.Equal(settings.Setting{Key: s.Key, Values: r.Settings[s.Key]})
		if !same && (may == mayNever || may == mayStopped && !idle) {
			return nil, usagef("%s cannot change now: %s", s.Key, why)
		}
	}
	if !idle {
		if err := checkRunningChange(wishes, r.Settings); err != nil {
			return nil, err
		}
	}
	return withAgent(wishes, r.Settings), checkManners(wishes, r.Settings)
}

// withAgent adds a change of the user agent if the contact changes and the old user agent was derived from it.
func withAgent(wishes []settings.Setting, was map[string][]string) []settings.Setting {
	is := func(key string) bool {
		return slices.ContainsFunc(wishes, func(s settings.Setting) bool { return s.Key == key })
	}
	made := job.UserAgent(strings.Join(was["contact"], ""))
	if is("contact") && !is("user-agent") && slices.Equal(was["user-agent"], []string{made}) {
		return append(slices.Clone(wishes), settings.Setting{Key: "user-agent"})
	}
	return wishes
}

func valueOf(key string, values []string) string {
	switch text := strings.Join(values, ","); {
	case key == "limit" && (text == "" || text == "0"):
		return "none"
	case key == job.FieldsKey && text != "":
		return stats.Count(int64(strings.Count(text, "\n")), "lines") + " of rules"
	case text != "":
		return text
	case key == "user-agent":
		return "derived from the contact"
	}
	if fl := crawlFlags(&options{}).Lookup(key); fl != nil && fl.DefValue != "" && fl.DefValue != "[]" {
		return fl.DefValue
	}
	return "not set"
}

// A shownSetting is a setting in the format of kumo set --json.
type shownSetting struct {
	Key    string     `json:"key"`
	Values []string   `json:"values"`
	May    changeTime `json:"may_change"` // any time, stopped or never
	Why    string     `json:"why,omitempty"`
}

func (c *clusterFlags) showSettings(ctx context.Context, w io.Writer, control admin.Client, asJSON bool) error {
	r, err := control.Record(ctx)
	if err != nil {
		return cluster.Advise(err)
	}
	if r.Settings == nil {
		return advice.With(fmt.Errorf("the crawl %q has not been started, and has no settings yet", c.crawl),
			"give them to kumo start; kumo start --help lists them")
	}
	var all []shownSetting
	for _, key := range settable() {
		may, why := mayChange(key)
		all = append(all, shownSetting{key, r.Settings[key], may, why})
	}
	slices.SortStableFunc(all, func(a, b shownSetting) int {
		order := []changeTime{mayAlways, mayStopped, mayNever}
		return slices.Index(order, a.May) - slices.Index(order, b.May)
	})
	if asJSON {
		if err := jsonLines(w, all); err != nil {
			return err
		}
		return cluster.Advise(control.Trouble())
	}
	for _, may := range []changeTime{mayAlways, mayStopped, mayNever} {
		printSettings(w, may, slices.DeleteFunc(slices.Clone(all), func(s shownSetting) bool { return s.May != may }))
	}
	return cluster.Advise(control.Trouble())
}

func printSettings(w io.Writer, may changeTime, all []shownSetting) {
	fmt.Fprintln(w, map[changeTime]string{mayAlways: "may change at any time (kumo set KEY=VALUE):",
		mayStopped: "may change while the crawl is stopped, because nodes read it at startup:",
		mayNever:   "cannot change, because URLs have been excluded, stored or named by it:"}[may])
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(t, "  %s\t%s\n", s.Key, valueOf(s.Key, s.Values))
	}
	_ = t.Flush() // the caller sees the write error
}

// settingsLine returns the settings for the status line: politeness, and others that differ from the default.
func settingsLine(settings map[string][]string) string {
	if settings == nil {
		return ""
	}
	defaults := crawlFlags(&options{})
	var said []string
	for _, key := range setting.LiveKeys() {
		values := settings[key]
		fl := defaults.Lookup(key)
		if key == "user-agent" && slices.Equal(values, []string{job.UserAgent(strings.Join(settings["contact"], ""))}) {
			continue
		}
		if key == "delay" || len(values) > 0 && fl != nil && strings.Join(values, ",") != fl.DefValue {
			said = append(said, key+" "+valueOf(key, values))
		}
	}
	return strings.Join(said, ", ")
}
