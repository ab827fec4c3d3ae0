package wire

import (
	"kumo/internal/crawl"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
)

// LimitKey is the setting that bounds the pages of all nodes together.
const LimitKey = "limit"

// Tunable are the settings that a crawl's nodes share and that may change while it runs. Others that are not lasting
// are read when nodes begin.
var Tunable = []string{LimitKey, "delay", "ip-delay", "max-crawl-delay", "contact", "user-agent", "connect-timeout",
	"timeout", "tries"}

// Tune makes of what may change while a crawl runs what the job has.
func (c *Crawl) Tune(j *Job) error {
	if _, err := j.Fix(); err != nil {
		return err
	}
	c.fetcher.SetManners(fetch.Manners{UserAgent: j.Fetch.UserAgent, ConnectTimeout: j.Fetch.ConnectTimeout,
		Timeout: j.Fetch.Timeout})
	d := frontier.Delays{Delay: j.Frontier.Delay, AddrDelay: j.Frontier.AddrDelay, MaxDelay: j.Frontier.MaxDelay}
	c.engine.Tune(crawl.Tuning{Delays: d, Tries: j.Crawl.Tries})
	if c.folder == nil {
		return nil
	}
	return c.folder.WriteSettings(j.Settings)
}
