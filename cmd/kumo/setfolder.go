package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/base/settings"
	"kumo/internal/view/text"
)

// changer returns a function that applies changes to the settings of a running crawl, on top of earlier changes.
func (o *options) changer(given *pflag.FlagSet) func([]settings.Setting, func(*job.Job) error) error {
	var changed []settings.Setting
	return func(wishes []settings.Setting, apply func(*job.Job) error) error {
		next := slices.Clone(wishes)
		for _, s := range changed {
			if !slices.ContainsFunc(next, func(w settings.Setting) bool { return w.Key == s.Key }) {
				next = append(next, s)
			}
		}
		j, err := o.jobWith(given, next)
		if err == nil {
			err = apply(j)
		}
		if err == nil {
			changed = next
		}
		return err
	}
}

// jobWith returns the job of these options with some settings changed.
func (o *options) jobWith(given *pflag.FlagSet, changed []settings.Setting) (*job.Job, error) {
	mine := &options{noFetch: true, seedFiles: o.fromFiles()}
	all := crawlFlags(mine)
	for _, s := range changed {
		if len(s.Values) == 0 {
			all.Lookup(s.Key).Changed = true // use the default
		} else if err := setFlag(all, s); err != nil {
			return nil, usagef("%s: %v", s.Key, err)
		}
	}
	err := error(nil)
	given.Visit(func(fl *pflag.Flag) {
		if err == nil && all.Lookup(fl.Name) != nil && fl.Name != "input-file" {
			err = setFlag(all, settingOf(fl))
		}
	})
	if err == nil {
		err = mine.finish()
	}
	if err != nil {
		return nil, err
	}
	j := &mine.Job
	j.Name, j.Dir, j.Seeds, j.File, j.Warn = o.Job.Name, o.Job.Dir, o.Job.Seeds, o.Job.File, o.Job.Warn
	j.Settings = mine.settings()
	return j, nil
}

// setIn changes settings of the crawl in a folder, or lists them.
func setIn(ctx context.Context, w io.Writer, dir string, wishes []settings.Setting, asJSON bool) error {
	if len(wishes) == 0 {
		return listSettings(w, dir, asJSON)
	}
	var changes []inspect.Setting
	for _, s := range wishes {
		if setting.Find(s.Key).Change != setting.Live {
			return usagef("%s cannot change while a crawl runs; these may: %s", s.Key, strings.Join(setting.LiveKeys(), ", "))
		}
		changes = append(changes, inspect.Setting{Key: s.Key, Values: s.Values})
	}
	was, err := folderSetter(dir).Set(ctx, changes)
	if err == nil {
		printChanges(w, changes, was)
	}
	return err
}

// setRunning applies the changes that f derives from the settings of the crawl in a folder, and prints them.
func setRunning(ctx context.Context, w io.Writer, dir string, f func(now map[string][]string) ([]inspect.Setting,
	error)) error {
	changes, was, err := inspect.Tune(ctx, folderSetter(dir), func() (map[string][]string, error) {
		saved, err := folder.ReadSettings(dir)
		return settings.Map(saved), err
	}, f)
	if err == nil {
		printChanges(w, changes, was)
	}
	return err
}

type folderSetter string

func (dir folderSetter) Set(ctx context.Context, changes []inspect.Setting) ([]inspect.Setting, error) {
	was, err := session.Set(ctx, string(dir), changes)
	if errors.Is(err, session.ErrNotRunning) {
		err = usagef("the crawl in %s does not run: give the settings to kumo crawl -o %[1]s, as flags", string(dir))
	}
	return was, err
}

func printChanges(w io.Writer, changes, was []inspect.Setting) {
	for i, s := range changes {
		fmt.Fprintf(w, "%s is %s now, was %s\n", s.Key, valueOf(s.Key, redactedValues(s)), valueOf(s.Key, was[i].Values))
	}
}

func redactedValues(s inspect.Setting) []string {
	values := slices.Clone(s.Values)
	for i := range values {
		values[i] = redact(s.Key, values[i])
	}
	return values
}

func listSettings(w io.Writer, dir string, asJSON bool) error {
	saved, err := folder.ReadSettings(dir)
	if err != nil {
		return err
	}
	if saved == nil {
		return folder.NoCrawlError(dir)
	}
	now := settings.Map(saved)
	for _, key := range setting.LiveKeys() {
		s := shownSetting{Key: key, Values: now[key], May: mayAlways}
		if asJSON {
			if err := text.JSON(w, s); err != nil {
				return err
			}
		} else {
			fmt.Fprintf(w, "%-16s %s\n", key, valueOf(key, s.Values))
		}
	}
	return nil
}
