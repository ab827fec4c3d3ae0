package kumo

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/settings"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/seeds"
)

// A lasting setting decides what a crawl has left out or written. It stands in the crawl's folder, as kumo crawl has
// it, and may change only so that more is let in; the order of URLs may change as it likes.
type lasting struct {
	key, option string
	of          func(*job.Job) []string
	take        func(*job.Job, []string) error
}

var lastings = []lasting{
	{"scope", "Scope", func(j *job.Job) []string { return []string{j.Scope.String()} },
		func(j *job.Job, v []string) (err error) { j.Scope, err = weburl.ParseMode(one(v)); return err }},
	{"depth", "Depth", depthOf, takeDepth},
	{"include", "Include", func(j *job.Job) []string { return texts(j.Crawl.Include) },
		func(j *job.Job, v []string) (err error) { j.Crawl.Include, err = compile(v); return err }},
	{"exclude", "Exclude", func(j *job.Job) []string { return texts(j.Crawl.Exclude) },
		func(j *job.Job, v []string) (err error) { j.Crawl.Exclude, err = compile(v); return err }},
	{"canon", "Canon", func(j *job.Job) []string { return strings.Split(j.Crawl.Canon.String(), ",") },
		func(j *job.Job, v []string) (err error) {
			j.Crawl.Canon, err = weburl.ParseRules(strings.Join(v, ","))
			return err
		}},
	{"embeds", "Embeds", func(j *job.Job) []string { return []string{strconv.FormatBool(j.Crawl.Embeds)} },
		func(j *job.Job, v []string) (err error) { j.Crawl.Embeds, err = strconv.ParseBool(one(v)); return err }},
	{"sitemaps", "Sitemaps", func(j *job.Job) []string { return []string{j.Crawl.Sitemaps.String()} },
		func(j *job.Job, v []string) (err error) {
			j.Crawl.Sitemaps, err = policy.ParseSitemaps(one(v))
			return err
		}},
	{"robots", "IgnoreRobots", robotsOf,
		func(j *job.Job, v []string) error { j.Crawl.IgnoreRobots = one(v) == "ignore"; return nil }},
	{"ignore", "Ignore", func(j *job.Job) []string { return j.Crawl.Ignore.Names() },
		func(j *job.Job, v []string) (err error) { j.Crawl.Ignore, err = policy.ParseDirectives(v); return err }},
	{job.NoTrapsKey, "NoTraps", func(j *job.Job) []string { return []string{strconv.FormatBool(j.Crawl.NoTraps)} },
		func(j *job.Job, v []string) (err error) { j.Crawl.NoTraps, err = strconv.ParseBool(one(v)); return err }},
	{"max-pages-per-host", "PagesPerHost",
		func(j *job.Job) []string { return []string{strconv.FormatInt(j.Crawl.PagesPerHost, 10)} },
		func(j *job.Job, v []string) (err error) {
			j.Crawl.PagesPerHost, err = strconv.ParseInt(one(v), 10, 64)
			return err
		}},
	bound(crawl.RulePagesPerDomain, "PagesPerDomain", crawl.DefaultPagesPerDomain,
		func(c *crawl.Config) *int64 { return &c.PagesPerDomain }),
	bound(crawl.RuleHostsPerDomain, "HostsPerDomain", crawl.DefaultHostsPerDomain, func(c *crawl.Config) *int64 {
		return &c.HostsPerDomain
	}),
	bound(crawl.RuleNamesPerDomain, "NamesPerDomain", crawl.DefaultNamesPerDomain, func(c *crawl.Config) *int64 {
		return &c.NamesPerDomain
	}),
	{job.OrderKey, "Order", func(j *job.Job) []string { return []string{cmp.Or(j.Order, job.ByDepth)} },
		func(j *job.Job, v []string) error { j.Order = one(v); return nil }},
	// without an option: they are as the command has begun the crawl
	{"name", "", func(j *job.Job) []string { return []string{j.Name} },
		func(j *job.Job, v []string) error { j.Name = one(v); return nil }},
	{"format", "", func(j *job.Job) []string { return j.Formats },
		func(j *job.Job, v []string) error { j.Formats = v; return nil }},
	{"script-paths", "", func(j *job.Job) []string { return []string{strconv.FormatBool(j.ScriptPaths)} },
		func(j *job.Job, v []string) (err error) { j.ScriptPaths, err = strconv.ParseBool(one(v)); return err }},
	{job.ReleaseTrapKey, "", func(j *job.Job) []string { return j.Crawl.ReleasedTraps },
		func(j *job.Job, v []string) error { j.Crawl.ReleasedTraps = v; return nil }},
	{job.SlicesKey, "", func(j *job.Job) []string { return []string{strconv.Itoa(max(j.Frontier.Slices, 1))} },
		func(j *job.Job, v []string) (err error) { j.Frontier.Slices, err = strconv.Atoi(one(v)); return err }},
}

// bound is the setting of a bound of registered domains.
func bound(key, option string, unset int64, of func(*crawl.Config) *int64) lasting {
	return lasting{key, option,
		func(j *job.Job) []string {
			return []string{strconv.FormatInt(max(cmp.Or(*of(&j.Crawl), unset), 0), 10)}
		},
		func(j *job.Job, v []string) error {
			n, err := strconv.ParseInt(one(v), 10, 64)
			*of(&j.Crawl) = job.Bound(n)
			return err
		}}
}

func one(values []string) string { return strings.Join(values, ",") }

func depthOf(j *job.Job) []string {
	if j.Crawl.Depth < 0 {
		return []string{job.NoLimit}
	}
	return []string{strconv.Itoa(j.Crawl.Depth)}
}

func takeDepth(j *job.Job, v []string) (err error) {
	if one(v) == job.NoLimit {
		j.Crawl.Depth = -1
		return nil
	}
	j.Crawl.Depth, err = strconv.Atoi(one(v))
	return err
}

func robotsOf(j *job.Job) []string {
	if j.Crawl.IgnoreRobots {
		return []string{"ignore"}
	}
	return []string{"obey"}
}

func texts(res []*regexp.Regexp) (all []string) {
	for _, re := range res {
		all = append(all, re.String())
	}
	return all
}

func compile(texts []string) (all []*regexp.Regexp, err error) {
	for _, text := range texts {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		all = append(all, re)
	}
	return all, nil
}

// goOn has the crawl in the folder go on as it was begun, and refuses options that say otherwise.
func (c *Crawler) goOn() error {
	if c.job.Dir == "" {
		return nil
	}
	saved, err := folder.ReadSettings(c.job.Dir)
	if err != nil {
		return inOptions(err)
	}
	if len(saved) > 0 {
		was := settings.Map(saved)
		if one(was["text"]) == "true" {
			return fmt.Errorf("kumo: the crawl in %s writes text.jsonl, which kumo crawl alone does: go on with "+
				"kumo crawl --out %[1]s", c.job.Dir)
		}
		if one(was[job.FieldsKey]) != "" {
			return fmt.Errorf("kumo: the crawl in %s writes fields.jsonl, which kumo crawl alone does: go on with "+
				"kumo crawl --out %[1]s", c.job.Dir)
		}
		for _, l := range lastings {
			if err := c.goOnWith(&l, was); err != nil {
				return err
			}
		}
	}
	return c.keepSettings(saved)
}

func (c *Crawler) goOnWith(l *lasting, was map[string][]string) error {
	old, known := was[l.key]
	if !c.set[l.key] {
		if !known {
			return nil
		}
		if err := l.take(&c.job, old); err != nil {
			return inOptions(folder.ToRepair(fmt.Errorf("the crawl in %s: %s: %w", c.job.Dir, l.key, err), c.job.Dir))
		}
		return nil
	}
	if !known {
		old = l.of(&New().job) // what is nothing is not written
	}
	now := l.of(&c.job)
	if l.key == job.OrderKey || slices.Equal(old, now) || job.Widens(l.key, old, now) {
		return nil
	}
	change := "cannot change"
	if slices.Contains(job.Widening, l.key) {
		change = "may only grow"
	}
	return fmt.Errorf("kumo.%s: the crawl in %s was begun with %q, and not %q, and that %s: name another folder with "+
		"kumo.Out", l.option, c.job.Dir, one(old), one(now), change)
}

// keepSettings puts the settings together that the folder is to have: those of before, where options do not say
// otherwise.
func (c *Crawler) keepSettings(saved []settings.Setting) error {
	j := &c.job
	if _, err := j.Fix(); err != nil {
		return inOptions(err)
	}
	var all []settings.Setting
	put := func(key string, values ...string) {
		saved = slices.DeleteFunc(saved, func(s settings.Setting) bool { return s.Key == key })
		if len(values) > 0 && values[0] != "" {
			all = append(all, settings.Setting{Key: key, Values: values})
		}
	}
	put(seedsKey, c.allSeeds(saved)...)
	for _, l := range lastings {
		put(l.key, l.of(j)...)
	}
	put("delay", j.Frontier.Delay.String())
	put("concurrency", strconv.Itoa(j.HostsAtOnce()))
	put("per-host", strconv.Itoa(max(j.Frontier.PerHost, 1)))
	put(job.OverrideKey, j.OverrideTexts()...)
	put("allow-private", strconv.FormatBool(j.Fetch.AllowPrivate))
	put("contact", j.Contact)
	put("user-agent", j.Fetch.UserAgent)
	j.Settings = append(all, saved...)
	return nil
}

const seedsKey = "seeds" // of the folder's settings

// allSeeds are those of the folder, and those that are given now.
func (c *Crawler) allSeeds(saved []settings.Setting) []string {
	all := settings.Map(saved)[seedsKey]
	given, err := seeds.Parse(c.job.Seeds)
	if err != nil {
		return all // Open says it
	}
	for _, u := range given {
		if s := u.String(); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
