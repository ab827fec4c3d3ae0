package kumo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/base/settings"
	"kumo/internal/content/policy"
	"kumo/internal/engine/seeds"
)

// savedKeys are the settings that package kumo stores in the crawl's folder, as kumo crawl does: those that decide
// which URLs are excluded and which files are written, and the order of URLs. Only the command has text and fields.
var savedKeys = setting.Keys(func(s *setting.Setting) bool {
	switch s.Key {
	case "text", job.FieldsKey:
		return false
	case job.NoTrapsKey, job.ReleaseTrapKey, job.OrderKey, job.NearDuplicatesKey:
		return true
	}
	return s.Lasting()
})

// settingOf returns the values of a setting in a job.
func settingOf(j *job.Job, key string) []string {
	return setting.Find(key).Get(&setting.Values{Job: *j})
}

// setSetting sets a setting in a job.
func setSetting(j *job.Job, key string, values []string) error {
	v := &setting.Values{Job: *j}
	err := setting.Find(key).Set(v, values)
	*j = v.Job
	return err
}

func one(values []string) string { return strings.Join(values, ",") }

// resume loads the settings of the crawl in the folder, and returns an error if options contradict them.
func (c *Crawler) resume() error {
	if c.job.Dir == "" {
		return nil
	}
	saved, err := folder.ReadSettings(c.job.Dir)
	if err != nil {
		return toOptionError(err)
	}
	if len(saved) > 0 {
		was := settings.Map(saved)
		if one(was["text"]) == "true" {
			return fmt.Errorf("kumo: the crawl in %s writes text.jsonl, which only kumo crawl supports: resume it with "+
				"kumo crawl --out %[1]s", c.job.Dir)
		}
		if one(was[job.FieldsKey]) != "" {
			return fmt.Errorf("kumo: the crawl in %s writes fields.jsonl, which only kumo crawl supports: resume it with "+
				"kumo crawl --out %[1]s", c.job.Dir)
		}
		for _, key := range savedKeys {
			if err := c.resumeSetting(key, was); err != nil {
				return err
			}
		}
		if mode := one(was[setting.RenderKey]); mode != "" && !c.set[setting.RenderKey] {
			c.job.Crawl.Render = policy.RenderMode(mode)
		}
	}
	return c.mergeSettings(saved)
}

func (c *Crawler) resumeSetting(key string, was map[string][]string) error {
	old, known := was[key]
	if !c.set[key] {
		if !known {
			return nil
		}
		if err := setSetting(&c.job, key, old); err != nil {
			return toOptionError(folder.WithRepairHint(fmt.Errorf("the crawl in %s: %s: %w", c.job.Dir, key, err), c.job.Dir))
		}
		return nil
	}
	if !known {
		old = settingOf(&New().job, key) // empty values are not stored
	}
	now := settingOf(&c.job, key)
	if key == job.OrderKey || slices.Equal(old, now) || setting.Widens(key, old, now) {
		return nil
	}
	s, change := setting.Find(key), "cannot change"
	if s.Widens != nil {
		change = "may only grow"
	}
	return fmt.Errorf("kumo.%s: the crawl in %s was started with %q, not %q, and the setting %s: name another folder "+
		"with kumo.Out", s.Option, c.job.Dir, one(old), one(now), change)
}

// mergeSettings merges the options into the saved settings of the folder.
func (c *Crawler) mergeSettings(saved []settings.Setting) error {
	j := &c.job
	if _, err := j.Normalize(); err != nil {
		return toOptionError(err)
	}
	var all []settings.Setting
	put := func(key string, values ...string) {
		saved = slices.DeleteFunc(saved, func(s settings.Setting) bool { return s.Key == key })
		if len(values) > 0 && values[0] != "" {
			all = append(all, settings.Setting{Key: key, Values: values})
		}
	}
	put(setting.SeedsKey, c.allSeeds(saved)...)
	for _, key := range savedKeys {
		put(key, settingOf(j, key)...)
	}
	put("delay", j.Frontier.Delay.String())
	put("concurrency", strconv.Itoa(j.HostsAtOnce()))
	put("per-host", strconv.Itoa(max(j.Frontier.PerHost, 1)))
	put(job.OverrideKey, j.OverrideTexts()...)
	put("allow-private", strconv.FormatBool(j.Fetch.AllowPrivate))
	put(setting.RenderKey, string(j.Crawl.Render))
	put("contact", j.Contact)
	put("user-agent", j.Fetch.UserAgent)
	j.Settings = append(all, saved...)
	return nil
}

// allSeeds returns the seeds in the folder and the seeds given now.
func (c *Crawler) allSeeds(saved []settings.Setting) []string {
	all := settings.Map(saved)[setting.SeedsKey]
	given, err := seeds.Parse(c.job.Seeds)
	if err != nil {
		return all // Open reports it
	}
	for _, u := range given {
		if s := u.String(); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
