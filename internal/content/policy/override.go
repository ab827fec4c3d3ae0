package policy

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
)

// An Override has settings of its own for some hosts, or for some of their URLs. Fields that are nil are not its
// business.
type Override struct {
	Name string // its match, as it was written
	Text string // all of it, as JSON, in one form: equal overrides have equal texts

	HostSettings
	URLSettings

	conditions []condition // one must hold
}

// HostSettings are those that hold for a host as a whole.
type HostSettings struct {
	Delay        *time.Duration // in place of the crawl's; a longer Crawl-delay holds as ever
	PerHost      *int           // connections
	PagesPerHost *int64         // 0: without limit
	BytesPerHost *int64         // over the wire; 0: without limit
	UserAgent    *string
	Proxies      []string // URLs; or "none" alone
}

// URLSettings are those that may differ between the URLs of a host.
type URLSettings struct {
	Depth   *int // hops from a seed; negative: without limit
	Scope   *weburl.Mode
	Recrawl *Interval
	Tries   *int
	MaxBody *int64 // bytes
	// fields beside the crawl's, or in their place; sent to all that the override matches
	Header http.Header
}

// A match is a condition: each part of it that is there must hold.
type condition struct {
	domain string         // a host, or one above it
	host   *regexp.Regexp // the host, with its port if that is not the scheme's
	name   string         // the same, where it has no *
	url    *regexp.Regexp // part of the URL
}

func (m *condition) holds(hostname, host, url string) bool {
	switch {
	case m.domain != "" && !isIn(hostname, m.domain):
		return false
	case m.name != "" && m.name != host && m.name != hostname:
		return false
	case m.host != nil && !m.host.MatchString(host):
		return false
	}
	return m.url == nil || m.url.MatchString(url)
}

func isIn(hostname, domain string) bool {
	rest, ok := strings.CutSuffix(hostname, domain)
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}

// Overrides are settings that some hosts and URLs have in place of the crawl's, as Heritrix's sheets and Scrapy's slots
// are. Of each setting the first override counts that matches and has it, in the order in which they were given. A nil
// pointer has none. Its methods may be called by many goroutines at once.
type Overrides struct{ set atomic.Pointer[overrideSet] }

// An overrideSet is not changed any more.
type overrideSet struct {
	all       []*Override
	byName    map[string][]int // those that need this host, or domain
	unindexed []int            // that only a look at the URL can tell
}

// NewOverrides makes a list of overrides, in the order in which they count.
func NewOverrides(all []*Override) *Overrides {
	o := &Overrides{}
	o.Set(all)
	return o
}

// Set puts others in the place of all.
func (o *Overrides) Set(all []*Override) {
	s := &overrideSet{all: all, byName: map[string][]int{}}
	for i, one := range all {
		for _, m := range one.conditions {
			switch {
			case m.domain != "":
				s.byName[m.domain] = append(s.byName[m.domain], i)
			case m.name != "":
				s.byName[m.name] = append(s.byName[m.name], i)
			default:
				s.unindexed = append(s.unindexed, i)
			}
		}
	}
	o.set.Store(s)
}

// All are the overrides in their order. Do not change them.
func (o *Overrides) All() []*Override {
	if s := o.current(); s != nil {
		return s.all
	}
	return nil
}

// current is nil where there are none.
func (o *Overrides) current() *overrideSet {
	if o == nil {
		return nil
	}
	if s := o.set.Load(); s != nil && len(s.all) > 0 {
		return s
	}
	return nil
}

// Any reports whether any override is one that f wants.
func (o *Overrides) Any(f func(*Override) bool) bool { return slices.ContainsFunc(o.All(), f) }

// candidates are those that may match, in their order. The common case is that there is none.
func (s *overrideSet) candidates(hostname, host string) []int {
	found := s.unindexed
	add := func(name string) {
		if more := s.byName[name]; len(more) > 0 {
			found = append(slices.Clip(found), more...)
		}
	}
	if host != hostname {
		add(host)
	}
	for name := hostname; name != ""; {
		add(name)
		_, name, _ = strings.Cut(name, ".")
	}
	if len(found) > len(s.unindexed) {
		slices.Sort(found)
		found = slices.Compact(found)
	}
	return found
}

// matching calls f with those that match, in their order. Without a URL only those count that match the whole host.
func (s *overrideSet) matching(host, url string, f func(*Override)) {
	hostname := hostnameOf(host)
	for _, i := range s.candidates(hostname, host) {
		o := s.all[i]
		if slices.ContainsFunc(o.conditions, func(m condition) bool {
			return (url != "" || m.url == nil) && m.holds(hostname, host, url)
		}) {
			f(o)
		}
	}
}

// hostnameOf is a host without port, brackets and the dot at its end, as overrides match it.
func hostnameOf(host string) string {
	return strings.Trim(strings.TrimSuffix(item.HostnameOf(host), "."), "[]")
}

// OfHost is what a host, with its port if that is not the scheme's, has of its own.
func (o *Overrides) ForHost(host string) (h HostSettings) {
	if s := o.current(); s != nil {
		s.matching(host, "", func(one *Override) { h.fill(&one.HostSettings) })
	}
	return h
}

func (h *HostSettings) fill(from *HostSettings) {
	fill(&h.Delay, from.Delay)
	fill(&h.PerHost, from.PerHost)
	fill(&h.PagesPerHost, from.PagesPerHost)
	fill(&h.BytesPerHost, from.BytesPerHost)
	fill(&h.UserAgent, from.UserAgent)
	if h.Proxies == nil {
		h.Proxies = from.Proxies
	}
}

// ForURL is what a URL, in canonical form, has of its own beside its host.
func (o *Overrides) ForURL(u weburl.URL) (s URLSettings) {
	if set := o.current(); set != nil {
		set.matching(u.Host(), u.String(), func(one *Override) { s.fill(&one.URLSettings) })
	}
	return s
}

func (s *URLSettings) fill(from *URLSettings) {
	fill(&s.Depth, from.Depth)
	fill(&s.Scope, from.Scope)
	fill(&s.Recrawl, from.Recrawl)
	fill(&s.Tries, from.Tries)
	fill(&s.MaxBody, from.MaxBody)
	if s.Header == nil {
		s.Header = from.Header
	}
}

func fill[T any](to **T, from *T) {
	if *to == nil {
		*to = from
	}
}

// An Applied is a setting that an override has given a URL.
type Applied struct {
	Setting  string `json:"setting"` // the flag's name
	Value    string `json:"value"`   // as it was written; secrets are left out
	Override string `json:"override"`
}

// Explain says which settings of a URL, and of its host, which overrides give it, in their order.
func (o *Overrides) Explain(u weburl.URL) (all []Applied) {
	set := o.current()
	if set == nil {
		return nil
	}
	set.matching(u.Host(), u.String(), func(one *Override) {
		for _, s := range overrideSettings {
			text, has := s.text(one)
			if has && !slices.ContainsFunc(all, func(a Applied) bool { return a.Setting == s.key }) {
				all = append(all, Applied{s.key, text, one.Name})
			}
		}
	})
	return all
}

// Scopes are the scopes that overrides have.
func (o *Overrides) Scopes() (modes []weburl.Mode) {
	for _, one := range o.All() {
		if one.Scope != nil && !slices.Contains(modes, *one.Scope) {
			modes = append(modes, *one.Scope)
		}
	}
	return modes
}

// depthLimit is how deep a URL may lie; negative: without limit.
func (r *Rules) depthLimit(u weburl.URL) int {
	if own := r.Overrides.ForURL(u).Depth; own != nil {
		return *own
	}
	return r.MaxDepth
}

// LimitsDepth reports whether any override bounds the depth.
func (o *Overrides) LimitsDepth() bool {
	return o.Any(func(one *Override) bool { return one.Depth != nil && *one.Depth >= 0 })
}

// LimitsPages reports whether any override bounds the pages of a host.
func (o *Overrides) LimitsPages() bool {
	return o.Any(func(one *Override) bool { return one.PagesPerHost != nil && *one.PagesPerHost > 0 })
}

// LimitsBytes reports whether any override bounds the bytes of a host.
func (o *Overrides) LimitsBytes() bool {
	return o.Any(func(one *Override) bool { return one.BytesPerHost != nil && *one.BytesPerHost > 0 })
}

// Recrawls reports whether any override has URLs visited again.
func (o *Overrides) Recrawls() bool {
	return o.Any(func(one *Override) bool { return one.Recrawl != nil && one.Recrawl.Every > 0 })
}

// Tracked is what a crawl has kept and counted from its start on, which some overrides need.
type Tracked struct {
	Scope          *weburl.Scope
	Depth, Recrawl bool // nearer links; times of the next visits
	Pages, Bytes   bool // by host
	PerHost        int  // connections that a host may have at most
}

// CheckRuntime says which of some overrides cannot come into force while a crawl runs, for want of what they need.
func (k *Tracked) CheckRuntime(all []*Override) error {
	o := NewOverrides(all)
	for _, mode := range o.Scopes() {
		if !k.Scope.Has(mode) {
			return needsRestart("scope " + mode.String())
		}
	}
	switch {
	case o.LimitsDepth() && !k.Depth:
		return needsRestart("depth")
	case o.LimitsPages() && !k.Pages:
		return needsRestart("max-pages-per-host")
	case o.LimitsBytes() && !k.Bytes:
		return needsRestart("max-bytes-per-host")
	case o.Recrawls() && !k.Recrawl:
		return needsRestart("recrawl")
	}
	for _, one := range all {
		if one.PerHost != nil && *one.PerHost > k.PerHost {
			return fmt.Errorf("an override with per-host %d: the crawl has begun with %d connections a host, and takes "+
				"more only from its next start on", *one.PerHost, k.PerHost)
		}
	}
	return nil
}

func needsRestart(what string) error {
	return fmt.Errorf("an override with %s: a crawl that has begun without any takes it only from its next start on", what)
}

func number[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
