package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/seeds"
)

// resolve reads the settings from all sources: flags and the environment, then the --config file, then the crawl in the
// folder.
func (o *options) resolve(ctx context.Context, f *pflag.FlagSet, args []string) error {
	if err := o.read(ctx, f, args, func(settings.Setting) error { return nil }); err != nil {
		return err
	}
	if err := o.findFolder(); err != nil {
		return err
	}
	if err := o.resume(f); err != nil {
		return err
	}
	o.Job.Block = withSaved(o.Job.Block, nil)
	if err := o.finish(); err != nil {
		return err
	}
	o.Job.Settings = o.settings()
	return o.Job.CheckSlices()
}

// read reads the settings given by flags, environment and --config file, and the input files. check can reject a
// setting of the --config file.
func (o *options) read(ctx context.Context, f *pflag.FlagSet, args []string, check func(settings.Setting) error) error {
	o.Job.Seeds = args
	if o.Config != "" {
		all, err := settings.Read(o.Config)
		if err != nil {
			return &usage{err}
		}
		for _, s := range all {
			if err := check(s); err != nil {
				return err
			}
		}
		if err := o.apply(f, all, o.Config); err != nil {
			return err
		}
	}
	if err := o.readInput(ctx); err != nil {
		return err
	}
	return o.finish() // before values are compared
}

// apply sets the flags that were not given. It checks all keys before it sets any.
func (o *options) apply(f *pflag.FlagSet, settings []settings.Setting, source string) error {
	for _, s := range settings {
		switch known := setting.Find(s.Key); {
		case s.Key == setting.SeedsKey, s.Key == setting.FilesKey:
		case known == nil || f.Lookup(s.Key) == nil:
			return unknownKey(f, s.Key, source)
		case known.FlagOnly:
			return usagef("%s: %q is only a flag: it cannot be set in a file", source, s.Key)
		}
	}
	for _, s := range settings {
		if s.Key == setting.SeedsKey {
			o.Job.Seeds = append(o.Job.Seeds, s.Values...)
			continue
		}
		if s.Key == setting.FilesKey {
			o.seedFiles = append(o.seedFiles, s.Values...)
			continue
		}
		if err := setFlag(f, s); err != nil {
			return usagef("%s: %s: %v", source, s.Key, err)
		}
	}
	return nil
}

func unknownKey(f *pflag.FlagSet, key, source string) error {
	names := []string{setting.SeedsKey}
	f.VisitAll(func(fl *pflag.Flag) { names = append(names, fl.Name) })
	if near := advice.Nearest(key, names); near != "" {
		return usagef("%s: there is no setting %q; did you mean %q?", source, key, near)
	}
	return usagef("%s: there is no setting %q", source, key)
}

// setFlag sets a flag unless it was given.
func setFlag(f *pflag.FlagSet, s settings.Setting) error {
	fl := f.Lookup(s.Key)
	if fl.Changed {
		return nil
	}
	if list, ok := fl.Value.(pflag.SliceValue); ok {
		values := s.Values
		if fl.Value.Type() == "stringSlice" { // as on the command line
			values = strings.Split(strings.Join(values, ","), ",")
		}
		if err := list.Replace(values); err != nil {
			return err
		}
		fl.Changed = true
		return nil
	}
	if len(s.Values) != 1 {
		return fmt.Errorf("want one value, not %d", len(s.Values))
	}
	return clarifyFlagError(f.Set(s.Key, s.Values[0]))
}

// findFolder sets the crawl's name and folder, and its storage location if it has one.
func (o *options) findFolder() error {
	if o.Out == sinks.Stdout && o.allowPipe {
		_, err := o.Job.Normalize()
		return err
	}
	dir, err := o.folderOfPlace()
	if err != nil {
		return err
	}
	if err := checkFolder("--out", dir); err != nil {
		return err
	}
	if _, err := o.Job.Normalize(); err != nil {
		return err
	}
	if dir == "" {
		if o.Job.Name == "" {
			return o.Job.NoSeedsError()
		}
		dir = folder.DefaultDir(o.Job.Name)
	}
	o.Job.Dir = dir
	return nil
}

// checkFolder rejects values that cannot be a folder of this machine.
func checkFolder(flag, dir string) error {
	switch {
	case dir == "-":
		return usagef("%s is -: a crawl is a folder of files and cannot go to standard output; name a folder, and follow "+
			"its pages.jsonl", flag)
	case strings.Contains(dir, "://"):
		return usagef("%s is %s: give a folder of this machine; kumo crawl -o uploads files to a storage location",
			flag, dir)
	}
	return nil
}

// resume takes the settings of the crawl in the folder, except those given now, and rejects changes of settings that
// cannot change.
func (o *options) resume(f *pflag.FlagSet) error {
	if o.Job.Fetch.User != "" && !f.Changed("password") {
		return usagef("--user %s needs --password: give '' for an empty one", o.Job.Fetch.User)
	}
	var saved []settings.Setting
	if !o.Job.Fresh && o.Job.Dir != "" {
		var err error
		if saved, err = folder.ReadSettings(o.Job.Dir); err != nil {
			return err
		}
	}
	// In a resumed crawl, an empty value resets the User-Agent of the earlier run.
	if len(saved) == 0 && f.Changed(userAgentKey) && o.Job.Fetch.UserAgent == "" {
		return usagef("--%s is empty: give a name for the crawler, or leave the flag out for the default", userAgentKey)
	}
	if len(saved) > 0 {
		if err := o.checkUnsaved(f, saved); err != nil {
			return err
		}
	}
	now := o.settings()
	for _, s := range saved {
		if err := o.checkSaved(f, s, now); err != nil {
			return err
		}
	}
	if f.Lookup(job.BlockKey).Changed {
		o.Job.Block = withSaved(o.Job.Block, settings.Map(saved)[job.BlockKey])
	}
	for _, s := range saved {
		value := strings.Join(s.Values, ",")
		if fl := f.Lookup(s.Key); fl != nil && !fl.Changed && value != fl.DefValue && value != o.Job.Name {
			o.inherited = append(o.inherited, "--"+s.Key+" "+value)
		}
	}
	return folder.WithRepairHint(o.apply(f, saved, o.Job.Dir), o.Job.Dir)
}

const userAgentKey = "user-agent"

func (o *options) checkSaved(f *pflag.FlagSet, s settings.Setting, now []settings.Setting) error {
	fl := f.Lookup(s.Key)
	if fl == nil {
		return nil // apply reports it
	}
	if slices.ContainsFunc(s.Values, func(v string) bool { return strings.Contains(v, settings.Redacted) }) &&
		!fl.Changed && !o.noFetch {
		return usagef("the crawl in %s has a --%s, which is not kept on disk: give it again, or an empty one to go on "+
			"without",
			o.Job.Dir, s.Key)
	}
	if !fl.Changed || !setting.Find(s.Key).Lasting() {
		return nil
	}
	if i := slices.IndexFunc(now, func(t settings.Setting) bool { return t.Key == s.Key }); i >= 0 &&
		(now[i].Equal(s) || setting.Widens(s.Key, s.Values, now[i].Values)) {
		return nil
	}
	change := "cannot change"
	if setting.Find(s.Key).Widens != nil {
		change = "may only grow"
	}
	if s.Key == job.FieldsKey {
		change = "may only become another file"
	}
	return usagef("the crawl in %s was begun with --%s %s, and that %s: %s",
		o.Job.Dir, s.Key, strings.Join(s.Values, ","), change, o.restartHint())
}

func (o *options) restartHint() string {
	if o.mirrorDir != "" {
		return "name another folder in place of " + o.mirrorDir + ", or move that one away and mirror again"
	}
	return "name another folder with --out, or begin again with --fresh, which sets this one aside"
}

// checkUnsaved rejects persistent settings that the crawl was started without.
func (o *options) checkUnsaved(f *pflag.FlagSet, saved []settings.Setting) error {
	for _, key := range setting.Keys((*setting.Setting).Lasting) {
		if key == job.FieldsKey {
			continue // may be added at any time
		}
		fl := f.Lookup(key)
		known := slices.ContainsFunc(saved, func(s settings.Setting) bool { return s.Key == key })
		if !known && fl.Changed && fl.Value.String() != fl.DefValue {
			return usagef("the crawl in %s was begun without --%s, and that cannot change: %s", o.Job.Dir, key, o.restartHint())
		}
	}
	return nil
}

// settings returns all values that are set, without secrets and settings for this run only.
func (o *options) settings() []settings.Setting {
	var all []settings.Setting
	if seeds := canonical(o.Job.Seeds); len(seeds) > 0 {
		all = append(all, settings.Setting{Key: setting.SeedsKey, Values: seeds})
	}
	if files := o.fromFiles(); len(files) > 0 {
		all = append(all, settings.Setting{Key: setting.FilesKey, Values: files})
	}
	for i := range setting.All {
		one := &setting.All[i]
		if one.Change == setting.PerRun || one.Unsaved {
			continue
		}
		if kept, ok := one.Stored(&o.Values); ok {
			for i := range kept.Values {
				kept.Values[i] = redact(kept.Key, kept.Values[i])
			}
			all = append(all, kept)
		}
	}
	return all
}

func canonical(typed []string) []string {
	urls, err := seeds.Parse(typed)
	if err != nil {
		return typed
	}
	var all []string
	for _, u := range urls {
		all = append(all, u.String())
	}
	return all
}

func redact(flag, value string) string {
	switch flag {
	case "password":
		if value != "" {
			return settings.Redacted
		}
	case job.OverrideKey:
		return redactOverride(value)
	case "header":
		if name, _, ok := strings.Cut(value, ":"); ok && fetch.IsSecret(strings.TrimSpace(name)) {
			return name + ": " + settings.Redacted
		}
	case "proxy":
		if i := strings.LastIndexByte(value, '@'); i >= 0 {
			scheme, _, ok := strings.Cut(value[:i], "://")
			if ok {
				scheme += "://"
			} else {
				scheme = ""
			}
			return scheme + settings.Redacted + value[i:]
		}
	}
	return value
}
