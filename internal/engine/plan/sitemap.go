package plan

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/state/frontier"
)

// readSitemap counts the URLs of a sitemap, and queues the sitemaps that it lists. why is the reason if it cannot be
// read, "" otherwise; err is an error of this machine's disk.
func (s *Survey) readSitemap(v *frontier.Visit, u weburl.URL, resp *page.Response) (why string, err error) {
	s.reading <- struct{}{} // limits the unpacked bodies in memory
	defer func() { <-s.reading }()
	if err := fetch.Decode(resp, maxUnpacked); errors.Is(err, fetch.ErrDisk) {
		return "", err
	} else if err != nil && resp.FullBody == nil {
		why = err.Error()
	}
	r := s.parsers.Get().(*reading)
	defer s.parsers.Put(r)
	if err := r.parser.ParseList(resp, &r.page); err != nil && why == "" {
		why = err.Error()
	}
	t := sitemapCounts{hosts: map[string]*hostCounts{}, elsewhere: map[string]int64{}}
	var lists []page.Link
	for i := range r.page.Links {
		switch l := &r.page.Links[i]; l.Kind {
		case page.Redirect:
			return s.followSitemap(v, u, l.URL), nil
		case page.Sitemap:
			lists = append(lists, *l)
		case page.Listed, page.Feed:
			s.judge(&t, v.URL, l)
		}
	}
	switch status := resp.Status; {
	case status != http.StatusOK:
		return fmt.Sprintf("status %d", status), nil
	case t.urls == 0 && len(lists) == 0 && why == "" && !slices.Contains(listTypes, r.page.Sniffed):
		return "not a list of URLs", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.ownerOf(&v.Item); h != nil {
		s.add(h, &t)
		for i := range lists {
			if to, err := weburl.Parse(lists[i].URL); err == nil {
				s.queue(h, &v.Item, to, 0)
			}
		}
	}
	if t.urls > 0 || len(lists) > 0 {
		return "", nil // entries before a fault count
	}
	return why, nil
}

// listTypes are the types of bodies that may be lists even if they list nothing.
var listTypes = []string{"text/xml", "application/xml", "text/plain"}

// followSitemap queues the target of a sitemap's redirect.
func (s *Survey) followSitemap(v *frontier.Visit, u weburl.URL, ref string) (why string) {
	to, err := weburl.Parse(ref)
	if err != nil {
		return "it redirects to an invalid URL"
	}
	if int(v.Redirects) >= s.cfg.Rules.MaxRedirects {
		return fmt.Sprintf("more than %d redirects in a row", s.cfg.Rules.MaxRedirects)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.ownerOf(&v.Item)
	if h == nil {
		return ""
	}
	before := len(s.asked)
	h.queued-- // the target replaces the sitemap
	s.queue(h, &v.Item, to, v.Redirects+1)
	if len(s.asked) == before {
		h.queued++
		return "it redirects to " + to.Host() + ", which is not read"
	}
	h.Sitemaps.Read-- // the target is counted when its visit ends
	return ""
}

// sitemapCounts counts the URLs of one sitemap.
type sitemapCounts struct {
	urls, inScope, allowed int64
	hosts                  map[string]*hostCounts // in scope
	elsewhere              map[string]int64       // URLs out of scope, by host
}

type hostCounts struct{ listed, entries int64 }

// judge counts a sitemap's entry by the crawl's rules.
func (s *Survey) judge(t *sitemapCounts, from string, l *page.Link) {
	t.urls++
	u, err := weburl.Parse(l.URL)
	if err != nil {
		return
	}
	u = s.cfg.Canon.Apply(u.Canonical())
	v := s.cfg.Rules.Judge(u, policy.Link{From: from, Kind: l.Kind, Depth: 1})
	if v.OffHost {
		if _, known := t.elsewhere[u.Host()]; known || len(t.elsewhere) < maxElsewhere {
			t.elsewhere[u.Host()]++
		}
		return
	}
	if v.Rule == "scope" {
		return
	}
	t.inScope++
	h := t.hosts[u.Host()]
	if h == nil {
		h = &hostCounts{}
		t.hosts[u.Host()] = h
	}
	h.entries++
	if v.Refused() {
		return
	}
	if ok, _ := s.mayFetch(u); !ok {
		return
	}
	url := u.String()
	if rules := s.rulesOf(u); rules != nil && !s.cfg.IgnoreRobots {
		url = rules.Clean(url)
	}
	if s.listed.Len() < maxListed && !s.listed.Add(url) {
		return
	}
	t.allowed++
	h.listed++
}

// add adds the counts of one of h's sitemaps to the hosts. The caller holds mu.
func (s *Survey) add(h *hostState, t *sitemapCounts) {
	h.Sitemaps.URLs += t.urls
	h.Sitemaps.InScope += t.inScope
	h.Sitemaps.Allowed += t.allowed
	for key, n := range t.hosts {
		if of := s.host(key); of != nil {
			of.listed += n.listed
			of.inSitemaps = of.inSitemaps || n.entries > 0
		}
	}
	for key, n := range t.elsewhere {
		if _, known := h.elsewhere[key]; known || len(h.elsewhere) < maxElsewhere {
			if h.elsewhere == nil {
				h.elsewhere = map[string]int64{}
			}
			h.elsewhere[key] += n
		}
	}
}
