package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/cluster/desired"
)

// A crawl of several nodes has the settings of kumo crawl, in two parts. Settings of scope and politeness are the same
// for all nodes: kumo start writes them to the crawl's record, with the keys of a configuration file, and the nodes
// read them there. Settings of a machine, such as memory and proxies, and secrets are flags of kumo node: secrets must
// not be in the registry.

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

// readStart reads the settings of kumo start: flags, then the --config file; and the seeds.
func (o *options) readStart(ctx context.Context, all *pflag.FlagSet, args []string) error {
	o.othersFetch = true
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
		return usagef("--max-pages-per-host cannot be combined with --slices in a crawl of several nodes: no node knows " +
			"how many pages of a host the others have")
	}
	if err := o.Job.CheckSlices(); err != nil {
		return err
	}
	if err := cmp.Or(checkShared(&o.Job), o.checkSharedSinks()); err != nil {
		return err
	}
	_, err = o.Job.Normalize()
	return err
}

func notShared(key, source string) error {
	if hasScope(key, setting.Node) {
		return usagef("%s: %q is a setting of one machine: give --%s to kumo node", source, key, key)
	}
	return usagef("%s: %q is only for a crawl on one machine", source, key)
}

// sharedSettings returns the settings that all nodes share, including defaults.
func (o *options) sharedSettings(all *pflag.FlagSet) []settings.Setting {
	shared := slices.DeleteFunc(o.settings(), func(s settings.Setting) bool { return !hasScope(s.Key, setting.Crawl) })
	for i := range setting.All {
		if s := &setting.All[i]; s.Unsaved && s.Scope == setting.Crawl {
			if one, is := s.Stored(&o.Values); is {
				shared = append(shared, one)
			}
		}
	}
	for i := range shared {
		if shared[i].Key == job.FieldsKey {
			shared[i].Values = []string{o.rulesText} // other machines do not have the file
		}
	}
	if o.Due {
		shared = append(shared, dueSetting)
	}
	return shared
}

// checkSharedSinks checks the sinks of a crawl of several nodes.
func (o *options) checkSharedSinks() error {
	for _, at := range o.Sinks {
		if err := sinks.CheckShared(at); err != nil {
			return err
		}
	}
	if len(o.Sinks) > 0 && !o.Job.Writes(job.JSONL) {
		return usagef("--sink needs pages.jsonl: add jsonl to --format")
	}
	return nil
}

// dueSetting is in the crawl's record for one run.
var dueSetting = settings.Setting{Key: desired.DueKey, Values: []string{"true"}}

// changedSettings returns the settings that change when a stopped crawl resumes. It rejects flags that the crawl cannot
// change.
func (o *options) changedSettings(
	all *pflag.FlagSet,
	crawl string,
	was map[string][]string,
) (changed []settings.Setting,
	err error) {
	shared := o.sharedSettings(all)
	for _, key := range settable() { // removed by an empty value
		if all.Lookup(key).Changed && !slices.ContainsFunc(shared, func(s settings.Setting) bool { return s.Key == key }) {
			shared = append(shared, settings.Setting{Key: key})
		}
	}
	if !o.Due && len(was[desired.DueKey]) > 0 {
		changed = append(changed, settings.Setting{Key: desired.DueKey})
	}
	for _, s := range shared {
		if !all.Lookup(s.Key).Changed {
			continue
		}
		if s.Key == desired.DueKey {
			changed = append(changed, s)
			continue
		}
		if may, _ := mayChange(s.Key); may != mayNever {
			changed = append(changed, s)
			continue
		}
		if !s.Equal(settings.Setting{Key: s.Key, Values: was[s.Key]}) {
			return nil, usagef("the crawl %q was started %s, and this setting cannot change: remove --%s, or "+
				"start another crawl",
				crawl, flagText(s.Key, was[s.Key]), s.Key)
		}
	}
	return withAgent(changed, was), checkManners(changed, was)
}

// checkManners returns an error if the changed settings are not valid together with the settings that the crawl was
// started with.
func checkManners(changed []settings.Setting, was map[string][]string) error {
	o := &options{}
	all := crawlFlags(o)
	for _, s := range slices.Concat(changed, settings.FromMap(was)) { // the first value of a key counts
		switch {
		case !slices.Contains([]string{job.SlicesKey, "per-host", "delay"}, s.Key):
		case len(s.Values) == 0:
			all.Lookup(s.Key).Changed = true // use the default
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

// resolveNode builds the node's job from its flags and the settings that all nodes share.
func (o *options) resolveNode(given *pflag.FlagSet, j *job.Job, shared []settings.Setting) error {
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
	shared = slices.DeleteFunc(slices.Clone(shared), func(s settings.Setting) bool {
		mine.Due = mine.Due || s.Key == desired.DueKey
		return s.Key == desired.DueKey
	})
	const source = "the settings of the crawl"
	if err := mine.apply(all, shared, source); err != nil {
		return advice.With(err, fmt.Sprintf("the crawl was started by another version of kumo than this one, %s: use the "+
			"same on all machines", job.Version))
	}
	if err := mine.finish(); err != nil {
		return err
	}
	mine.Job.Name, mine.Job.Dir, mine.Job.Listener, mine.Job.Warn = j.Name, j.Dir, j.Listener, j.Warn
	mine.Job.Upload = j.Upload
	c := &mine.Job.Crawl
	c.Pages, c.Bytes, c.Time = 0, 0, 0 // limits of all nodes together
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
