package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
)

// A crawl of several nodes has the settings of kumo crawl, in two hands. What is crawled, and how politely, is the same
// for all nodes: kumo start puts it into the crawl's record, by the keys of a configuration file, and the nodes take it
// from there. What one machine can bear, and where it reaches the web from, is told to kumo node, and so are secrets:
// they are not to lie in the registry.

func ofScope(scope setting.Scope) []string {
	return setting.Keys(func(s *setting.Setting) bool { return s.Scope == scope })
}

func hasScope(key string, scope setting.Scope) bool {
	s := setting.Find(key)
	return s != nil && s.Scope == scope
}

func borrow(to, from *pflag.FlagSet, names []string) {
	for _, name := range names {
		to.AddFlag(from.Lookup(name))
	}
}

// readStart reads what kumo start was told: flags, then the --config file; and the seeds.
func (o *options) readStart(ctx context.Context, all *pflag.FlagSet, args []string) error {
	err := o.read(ctx, all, args, func(s settings.Setting) error {
		if s.Key != setting.SeedsKey && s.Key != setting.FilesKey && all.Lookup(s.Key) != nil &&
			!hasScope(s.Key, setting.Crawl) {
			return notShared(s.Key, o.Config)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.Job.Frontier.Slices > 1 && o.Job.Crawl.PagesPerHost > 0 {
		return usagef("--max-pages-per-host does not go with --slices in a crawl of several nodes: none of them knows " +
			"how many pages of a host the others have")
	}
	if err := o.Job.CheckSlices(); err != nil {
		return err
	}
	if err := checkShared(&o.Job); err != nil {
		return err
	}
	_, err = o.Job.Normalize()
	return err
}

func notShared(key, source string) error {
	if hasScope(key, setting.Node) {
		return usagef("%s: %q speaks of one machine: give --%s to kumo node", source, key, key)
	}
	return usagef("%s: %q is for a crawl of one node alone", source, key)
}

// sharedSettings are the settings that all nodes must have, whether the user has given them or not.
func (o *options) sharedSettings(all *pflag.FlagSet) []settings.Setting {
	return slices.DeleteFunc(o.settings(), func(s settings.Setting) bool { return !hasScope(s.Key, setting.Crawl) })
}

// changes are the settings with which a crawl goes on that has been stopped. Flags by which it would become another
// crawl are refused.
func (o *options) changedSettings(all *pflag.FlagSet, crawl string, was map[string][]string) (changed []settings.Setting,
	err error) {
	shared := o.sharedSettings(all)
	for _, key := range settable() { // taken back by an empty value
		if all.Lookup(key).Changed && !slices.ContainsFunc(shared, func(s settings.Setting) bool { return s.Key == key }) {
			shared = append(shared, settings.Setting{Key: key})
		}
	}
	for _, s := range shared {
		if !all.Lookup(s.Key).Changed {
			continue
		}
		if may, _ := mayChange(s.Key); may != mayNever {
			changed = append(changed, s)
			continue
		}
		if !s.Equal(settings.Setting{Key: s.Key, Values: was[s.Key]}) {
			return nil, usagef("the crawl %q was started %s, and what its nodes share does not change: leave --%s out, or "+
				"begin another crawl",
				crawl, flagText(s.Key, was[s.Key]), s.Key)
		}
	}
	return withAgent(changed, was), checkManners(changed, was)
}

// checkManners says why a crawl cannot go on with some settings changed: those that it was started with allow no
// others.
func checkManners(changed []settings.Setting, was map[string][]string) error {
	o := &options{}
	all := crawlFlags(o)
	for _, s := range slices.Concat(changed, settings.FromMap(was)) { // of a key the first counts
		switch {
		case !slices.Contains([]string{job.SlicesKey, "per-host", "delay"}, s.Key):
		case len(s.Values) == 0:
			all.Lookup(s.Key).Changed = true // as by default
		default:
			if err := setFlag(all, s); err != nil {
				return err
			}
		}
	}
	return o.Job.CheckSlices()
}

func flagText(key string, values []string) string {
	if len(values) == 0 {
		return "without --" + key
	}
	return fmt.Sprintf("with --%s %s", key, strings.Join(values, ","))
}

// resolveNode makes of a node's flags and of the settings that all nodes share the job of this node.
func (o *options) resolveNode(given *pflag.FlagSet, j *job.Job, settings []settings.Setting) error {
	mine := &options{}
	all := crawlFlags(mine)
	err := error(nil)
	given.Visit(func(fl *pflag.Flag) {
		if hasScope(fl.Name, setting.Node) && err == nil {
			err = setFlag(all, settingOf(fl))
		}
	})
	if err != nil {
		return err
	}
	const source = "the settings of the crawl"
	if err := mine.apply(all, settings, source); err != nil {
		return advice.With(err, fmt.Sprintf("the crawl was started by another version of kumo, and this is %s: use the "+
			"same on all machines", job.Version))
	}
	if err := mine.finish(); err != nil {
		return err
	}
	mine.Job.Name, mine.Job.Dir, mine.Job.Listener, mine.Job.Warn = j.Name, j.Dir, j.Listener, j.Warn
	mine.Job.Upload = j.Upload
	mine.Job.Crawl.Pages = 0 // all nodes together are counted
	mine.Job.Settings = mine.settings()
	*j = mine.Job
	return nil
}

func settingOf(fl *pflag.Flag) settings.Setting {
	if list, ok := fl.Value.(pflag.SliceValue); ok {
		return settings.Setting{Key: fl.Name, Values: list.GetSlice()}
	}
	return settings.Setting{Key: fl.Name, Values: []string{fl.Value.String()}}
}
