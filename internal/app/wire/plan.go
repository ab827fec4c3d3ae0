package wire

import (
	"cmp"
	"errors"
	"runtime"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/plan"
	"kumo/internal/state/frontier"
)

// maxPlanTries is the number of attempts of a plan. A crawl makes more.
const maxPlanTries = 2

// Survey creates a survey of the hosts of a job's seeds. It stores nothing. The caller finally calls done.
func Survey(j *job.Job) (s *plan.Survey, done func() error, err error) {
	mine := *j
	mine.Dir, mine.Fresh, mine.Logins, mine.Crawl.Recrawl = "", false, nil, policy.Recrawl{}
	mine.Order, mine.Frontier.Slices = job.ByDepth, 1
	o := &opening{Parts: session.Parts{Job: &mine}, disk: vfs.OS, willRun: true}
	if err := o.check(); err != nil {
		return nil, nil, errors.Join(err, o.Close())
	}
	c := &mine.Crawl
	maxDelay := cmp.Or(mine.Frontier.MaxDelay, 30*time.Second)
	fc := mine.Frontier
	fc.Dir, fc.Now, fc.Overrides = "", c.Now, mine.HostConfig
	rules := robots.NewCache(robots.Config{Agent: job.Agent, Now: c.Now, ErrorTTL: 24 * time.Hour})
	o.Closers = append(o.Closers, rules.Close)
	s = plan.New(plan.Config{
		Rules: policy.Rules{Scope: weburl.NewScope(mine.Scope, c.Overrides.Scopes()...), Block: o.block, Include: c.Include,
			Exclude:  c.Exclude,
			MaxDepth: c.Depth, MaxRedirects: cmp.Or(c.MaxRedirects, crawl.DefaultRedirects), Embeds: c.Embeds,
			Overrides: c.Overrides},
		Canon: c.Canon, IgnoreRobots: c.IgnoreRobots, Sitemaps: c.Sitemaps, MaxSitemap: cmp.Or(c.MaxSitemap, 50<<20),
		PagesPerHost: c.PagesPerHost, OnlySeeds: mine.Scope == weburl.ScopePage, Delay: fc.Delay, MaxDelay: maxDelay,
		Workers: mine.Workers(), Rate: c.Rate, Tries: min(maxPlanTries, max(c.Tries, 1)), Now: mine.Now,
	}, plan.Parts{
		Fetcher: o.Fetcher, Frontier: frontier.New(fc), Readers: 2 * runtime.GOMAXPROCS(0), Robots: rules,
		NewParser: func() plan.Parser { return parse.New(parserConfig(&mine, maxPlanBytes)) },
	})
	add := func(seeds []weburl.URL, _ int64) error {
		for _, u := range seeds {
			if err := s.Add(u); err != nil {
				return err
			}
		}
		return nil
	}
	err = add(o.SeedURLs, 0)
	if f := mine.File; err == nil && f != nil && !f.Few() {
		err = f.Each(0, add)
	}
	if err != nil {
		return nil, nil, errors.Join(err, o.Close())
	}
	return s, o.Close, nil
}

// maxPlanBytes is the number of decoded bytes of a sitemap that a plan reads.
const maxPlanBytes = 64 << 20
