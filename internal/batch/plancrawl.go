package batch

import (
	"context"
	"path"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/content/robots"
)

const (
	maxTalliedHosts = 1 << 18 // hosts whose URLs are counted
	maxPlannedHosts = 4096    // hosts that are assigned a partition; the many others are assigned by hash
)

// planCrawl lists the day's robots.txt answers, and distributes the hosts of a round over the partitions.
func (p *Pipeline) planCrawl(ctx context.Context, conf *Conf, files []string) (err error) {
	if conf.Rules, err = ListFiles(ctx, p.Place, path.Join(RobotsFolder, p.Date)); err != nil || conf.Reducers < 2 {
		return err
	}
	job, err := newSetup(conf, p.Deps)
	if err != nil {
		return err
	}
	tally := newHostTally(maxTalliedHosts)
	if err := EachRecord(ctx, p.Place, files, func(r Record) error { return job.countHost(r, tally) }); err != nil {
		return err
	}
	hosts := tally.heaviest(maxPlannedHosts)
	threads := 0
	var interval time.Duration
	for _, c := range conf.Collections {
		threads += c.Threads
		interval = max(interval, time.Duration(c.Interval))
	}
	delays, err := p.delays(ctx, conf)
	if err != nil {
		return err
	}
	for i := range hosts {
		hosts[i].Interval = max(interval, min(delays[hosts[i].Host], maxCrawlDelay))
	}
	conf.Hosts = PlanHosts(hosts, conf.Reducers, threads)
	return nil
}

// countHost counts the host of a crawl's input record.
func (s *setup) countHost(r Record, t *hostTally) error {
	if KindOf(r.Value) != KindKnown {
		_, url, err := SplitKey(r.Key)
		t.add(item.HostOf(url))
		return err
	}
	k, err := ReadKnown(r.Key, r.Value)
	if err != nil {
		return err
	}
	m, err := s.member(k.Collection)
	if err != nil {
		return err
	}
	if s.fromKnown(m, &k).Due {
		t.add(item.HostOf(k.URL))
	}
	return nil
}

// delays returns the delays that today's robots.txt files request, by host.
func (p *Pipeline) delays(ctx context.Context, conf *Conf) (map[string]time.Duration, error) {
	all := map[string]time.Duration{}
	return all, EachRecord(ctx, p.Place, conf.Rules, func(r Record) error {
		rules, err := ReadRobotsRecord(r.Key, r.Value)
		if err != nil {
			return err
		}
		if delay, asked := robots.FromStatus(rules.Status, rules.Body, conf.Fetching.Agent).Delay(); asked {
			host := item.HostOf(rules.Origin)
			all[host] = max(all[host], delay)
		}
		return nil
	})
}
