package wire

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
)

// Tunable are the settings that a crawl's nodes share and that may change while it runs. Others that are not lasting are read when nodes begin.
var Tunable = []string{limitKey, "delay", "ip-delay", "max-crawl-delay", "contact", "user-agent", "connect-timeout", "timeout", "tries"}

// tune makes of what may change while a crawl runs what the job has.
func (c *Crawl) tune(j *Job) error {
	if _, err := j.Fix(); err != nil {
		return err
	}
	c.fetcher.SetManners(fetch.Manners{UserAgent: j.Fetch.UserAgent, ConnectTimeout: j.Fetch.ConnectTimeout, Timeout: j.Fetch.Timeout})
	d := frontier.Delays{Delay: j.Frontier.Delay, AddrDelay: j.Frontier.AddrDelay, MaxDelay: j.Frontier.MaxDelay}
	c.engine.Tune(crawl.Tuning{Delays: d, Tries: j.Crawl.Tries})
	if c.folder == nil {
		return nil
	}
	return c.folder.writeSettings(j.Settings)
}

// settle goes by the settings that the crawl's record has now, as far as they may change while it runs.
func (l *life) settle(settings map[string][]string) {
	settle := l.n.opts.Settle
	l.counter.setLimit(settings)
	if settle == nil || maps.EqualFunc(settings, l.settings, slices.Equal) {
		return
	}
	job := *l.n.job
	err := settle(&job, settingsOf(settings))
	if err == nil {
		err = l.crawl.tune(&job)
	}
	if err != nil {
		l.n.opts.Log.Warn("this node does not go by the crawl's new settings", "err", err)
		return
	}
	for _, key := range changed(l.settings, settings) {
		l.n.opts.Log.Info("a setting of the crawl is another one", "setting", key, "was", l.settings[key], "is", settings[key])
	}
	l.settings = settings
}

// errSettings says that the crawl was started with settings that are read when a node begins, and are others than this one began with.
var errSettings = errors.New("the crawl's settings are others now")

// stillTrue returns errSettings if the node must begin anew for settings.
func (l *life) stillTrue(settings map[string][]string) error {
	if l.n.opts.Settle == nil {
		return nil
	}
	for _, key := range changed(l.settings, settings) {
		if !slices.Contains(Tunable, key) {
			return fmt.Errorf("%w: %s", errSettings, key)
		}
	}
	return nil
}

// changed are the keys that have other values.
func changed(was, is map[string][]string) (keys []string) {
	for key, values := range is {
		if !slices.Equal(values, was[key]) {
			keys = append(keys, key)
		}
	}
	for key := range was {
		if _, there := is[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
