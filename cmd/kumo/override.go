package main

import (
	"errors"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/base/settings"
	"kumo/internal/content/policy"
)

func (o *options) readOverrides() error {
	var all []*policy.Override
	for _, text := range o.Overrides {
		more, err := policy.ParseOverrides(text)
		if err != nil {
			return usagef("--%s: %v", job.OverrideKey, err)
		}
		all = append(all, more...)
	}
	return o.Job.SetOverrides(all)
}

func redactOverride(text string) string {
	all, err := policy.ParseOverrides(text)
	if err != nil || len(all) != 1 {
		return text
	}
	return job.RedactOverride(all[0])
}

func checkSecrets(wishes []settings.Setting) error {
	o := &options{}
	for _, s := range wishes {
		switch s.Key {
		case job.OverrideKey:
			o.Overrides = s.Values
		case job.SinkKey:
			o.Sinks = s.Values
		}
	}
	for _, at := range o.Sinks {
		if err := sinks.CheckShared(at); err != nil {
			return err
		}
	}
	if err := o.readOverrides(); err != nil {
		return err
	}
	return checkShared(&o.Job)
}

// checkRunningChange rejects overrides that running nodes cannot apply.
func checkRunningChange(wishes []settings.Setting, was map[string][]string) error {
	o, next := &options{}, &options{}
	all := crawlFlags(o)
	for _, key := range []string{"scope", "depth", "max-pages-per-host", "per-host", job.SlicesKey, job.OverrideKey} {
		if len(was[key]) > 0 {
			if err := setFlag(all, settings.Setting{Key: key, Values: was[key]}); err != nil {
				return err
			}
		}
	}
	for _, s := range wishes {
		if s.Key == job.OverrideKey {
			next.Overrides = s.Values
		}
	}
	if err := errors.Join(o.finish(), next.readOverrides()); err != nil {
		return err
	}
	if err := o.Job.CheckLive(next.Job.Crawl.Overrides.All()); err != nil {
		return usagef("%s: %w", job.OverrideKey, err)
	}
	return nil
}

// checkShared rejects overrides with secrets, which the registry must not contain.
func checkShared(j *job.Job) error {
	for _, one := range j.Crawl.Overrides.All() {
		if job.RedactOverride(one) != one.Text {
			return usagef("--%s: match %s: it contains a secret, and the nodes' registry must not: give kumo node "+
				"--header, --proxy or --login", job.OverrideKey, one.Name)
		}
	}
	return nil
}
