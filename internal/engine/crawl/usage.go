package crawl

import (
	"kumo/internal/base/page"
	"kumo/internal/content/policy"
	"kumo/internal/content/usage"
	"kumo/internal/state/frontier"
)

// RuleUsage is the rule in skipped.jsonl of URLs whose robots.txt does not allow a use that the crawl obeys.
const RuleUsage = "usage"

// usageOf returns what is done with a host's pages if the host does not allow a use.
func (c *Config) usageOf(host string) policy.Usage {
	if len(c.Overrides.All()) > 0 {
		if own := c.Overrides.ForHost(host).Usage; own != nil {
			return *own
		}
	}
	return c.Usage
}

// forbiddenUsage returns the line of robots.txt for which the crawl skips a URL; "" if it does not. Sitemaps are only
// read for their URLs.
func (p *pageReader) forbiddenUsage(v *frontier.Visit) string {
	mode := p.cfg.usageOf(p.trap.url.Host())
	if !mode.Skips() || v.Kind == page.Sitemap {
		return ""
	}
	for i := range p.stated {
		line := &p.stated[i]
		if uses := usage.FromRobots(line).Uses; mode.Forbidden(&uses) != "" {
			return line.Text
		}
	}
	return ""
}

// markUsage records the usage preferences of a page, and whether the crawl withholds its content.
func (p *pageReader) markUsage(rec *page.Record) {
	if rec.Usage = usage.Of(p.stated, p.tdm, rec.Response, rec.Page); rec.Usage != nil {
		rec.Withheld = p.cfg.usageOf(p.trap.url.Host()).Forbidden(&rec.Usage.Uses)
	}
}

// usageWords returns the words by which a page's statements are counted: "train_ai=n license".
func usageWords(rec *page.Record) string {
	if rec.Usage == nil {
		return ""
	}
	words := rec.Usage.Uses.String()
	if rec.Usage.License != "" {
		words += " license"
	}
	if rec.Withheld != "" {
		words += " withheld"
	}
	return words
}
