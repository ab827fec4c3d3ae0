package plan

import (
	"fmt"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/policy"
)

func (s *Survey) plan() *Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Plan{Seeds: s.seeds, Requests: s.requests}
	for _, key := range s.order {
		h := s.hosts[key]
		if len(h.origins) > 0 && !s.cfg.IgnoreRobots && h.unanswered() {
			p.Left++
			continue
		}
		s.judgeSeeds(h)
		s.describeDelay(h)
		s.expect(h)
		if h.answers > 0 {
			h.Answer = (h.answering / time.Duration(h.answers)).Seconds()
		}
		p.Hosts = append(p.Hosts, h.Host)
	}
	return p
}

// unanswered reports whether the survey ended before any request for the host's robots.txt was finished.
func (h *hostState) unanswered() bool {
	for _, o := range h.origins {
		if o.done {
			return false
		}
	}
	return true
}

// judgeSeeds determines which of a host's seeds may be fetched.
func (s *Survey) judgeSeeds(h *hostState) {
	h.Seeds, h.Allowed = len(h.seeds), Unknown
	if h.Seeds == 0 {
		return
	}
	allowed := 0
	for _, u := range h.seeds {
		v := s.cfg.Rules.Judge(u, policy.Link{Kind: page.Seed, Seed: true})
		ok, line := s.mayFetch(u)
		if o := h.origins[u.Origin()]; o != nil && o.failure != page.None {
			h.Failure, h.Error = o.failure, o.detail
		}
		switch {
		case v.Refused():
			h.forbid(Line{Text: v.Rule + ": " + v.Why, URL: u.String()})
		case !ok:
			h.forbid(Line{Number: line.Number, Text: line.Text, URL: u.String()})
		default:
			allowed++
			if s.listed.Add(u.String()) {
				h.listed++
			}
		}
	}
	for _, o := range h.origins {
		h.Status = max(h.Status, o.status)
	}
	switch {
	case allowed == h.Seeds:
		h.Allowed = Yes
	case allowed > 0:
		h.Allowed = Some
	case h.Failure != page.None:
		h.Allowed, h.Rule = NoReply, nil
	default:
		h.Allowed = No
	}
}

func (h *hostState) forbid(by Line) {
	if h.Rule == nil {
		h.Rule = &by
	}
}

// describeDelay sets the crawl's delay between requests to the host, as its frontier applies it, and the setting that
// determines it.
func (s *Survey) describeDelay(h *hostState) {
	delay, by := s.cfg.Delay, "--delay"
	if own := s.cfg.Rules.Overrides.ForHost(h.Host.Host).Delay; own != nil {
		delay, by = *own, "override"
	}
	asked := time.Duration(h.CrawlDelay * float64(time.Second))
	if obeyed := min(asked, max(s.cfg.MaxDelay, 0)); obeyed > delay {
		if delay, by = obeyed, "Crawl-delay"; obeyed < asked {
			by = "--max-crawl-delay"
		}
	}
	if info, known := s.parts.Frontier.Host(h.Host.Host); known {
		delay = max(info.Delay, 0)
	}
	h.Delay, h.DelayBy = delay.Seconds(), by
}

// expect sets the expected number of pages, and what it is based on.
func (s *Survey) expect(h *hostState) {
	if len(h.elsewhere) > 0 {
		h.Sitemaps.Elsewhere = stats.ByCount(h.elsewhere)[0]
	}
	most, bound := s.cfg.PagesPerHost, "--max-pages-per-host"
	if own := s.cfg.Rules.Overrides.ForHost(h.Host.Host).PagesPerHost; own != nil {
		most, bound = *own, "override"
	}
	known := func(n int64, by string) {
		if most > 0 && n > most {
			n, by = most, bound
		}
		h.Pages, h.PagesBy = &n, by
	}
	switch {
	case h.Allowed == No || h.Allowed == NoReply:
		known(0, "no seed is allowed")
	case s.cfg.Rules.MaxDepth == 0:
		known(h.listed, "seeds alone (--depth 0)")
	case s.cfg.OnlySeeds:
		known(h.listed, "seeds alone (--scope page)")
	case h.inSitemaps && h.Sitemaps.Left > 0 && h.Sitemaps.Read > 0:
		all := float64(h.Sitemaps.Read+h.Sitemaps.Left) / float64(h.Sitemaps.Read)
		known(int64(float64(h.listed)*all), fmt.Sprintf("%d of %d sitemaps", h.Sitemaps.Read,
			h.Sitemaps.Read+h.Sitemaps.Left))
	case h.inSitemaps:
		known(h.listed, "sitemaps")
	case most > 0:
		known(most, bound+": at most")
	case h.Sitemaps.Failed > 0:
		h.PagesBy = "unknown: its sitemaps could not be read"
	case h.Sitemaps.URLs > 0:
		h.PagesBy = "unknown: its sitemaps list nothing in scope"
	case s.cfg.Sitemaps == policy.SitemapsIgnored:
		h.PagesBy = "unknown: --sitemaps ignore"
	case h.noneGuessed:
		h.PagesBy = "unknown: it has no sitemap"
	default:
		h.PagesBy = "unknown: it names no sitemap"
	}
	if h.Sitemaps.URLs > 0 && h.Sitemaps.InScope == 0 && h.Sitemaps.Elsewhere != "" && h.Note == "" {
		h.Note = fmt.Sprintf("its sitemaps list pages of %s, which no seed names", h.Sitemaps.Elsewhere)
	}
}
