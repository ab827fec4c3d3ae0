package policy

import (
	"errors"
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
	"kumo/internal/content/render"
)

// An Override is a set of settings for some hosts or URLs. Fields that are nil are not set.
type Override struct {
	Name string // its match, as written
	Text string // the whole override in canonical JSON: equal overrides have equal texts

	HostSettings
	URLSettings

	conditions []condition // at least one must hold
}

// HostSettings are the settings that apply to a host as a whole.
type HostSettings struct {
	Delay        *time.Duration // replaces the crawl's delay; a longer Crawl-delay still applies
	PerHost      *int           // connections
	PagesPerHost *int64         // 0: no limit
	BytesPerHost *int64         // over the wire; 0: no limit
	UserAgent    *string
	Proxies      []string // URLs; or only "none"
	Render       *RenderMode
	RenderWait   *render.Wait
	Usage        *Usage
}

// URLSettings are the settings that may differ between the URLs of a host.
type URLSettings struct {
	Depth   *int // hops from a seed; negative: no limit
	Scope   *weburl.Mode
	Recrawl *Interval
	Tries   *int
	MaxBody *int64 // bytes
	// added to the crawl's fields or replacing them; sent to all hosts that the override matches
	Header http.Header
}

// A condition matches hosts or URLs. All its fields that are set must match.
type condition struct {
	domain string         // the host or a domain above it
	host   *regexp.Regexp // the host, with its port unless that is the scheme's default
	name   string         // the same, without *
	url    *regexp.Regexp // a part of the URL
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

// Overrides are settings for some hosts and URLs that replace the crawl's, like Heritrix's sheets and Scrapy's slots.
// For each setting, the first override applies that matches and has it. A nil pointer has no overrides. The methods are
// safe for concurrent use.
type Overrides struct{ set atomic.Pointer[overrideSet] }

// An overrideSet is immutable.
type overrideSet struct {
	all       []*Override
	byName    map[string][]int // overrides that require this host or domain
	unindexed []int            // overrides whose conditions must be evaluated for each URL
}

// NewOverrides returns a list of overrides, in the order of precedence.
func NewOverrides(all []*Override) *Overrides {
	o := &Overrides{}
	o.Set(all)
	return o
}

// Set replaces all overrides.
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

// All returns the overrides in order. The caller must not modify them.
func (o *Overrides) All() []*Override {
	if s := o.current(); s != nil {
		return s.all
	}
	return nil
}

// current returns nil if there are no overrides.
func (o *Overrides) current() *overrideSet {
	if o == nil {
		return nil
	}
	if s := o.set.Load(); s != nil && len(s.all) > 0 {
		return s
	}
	return nil
}

// Any reports whether f is true for any override.
func (o *Overrides) Any(f func(*Override) bool) bool { return slices.ContainsFunc(o.All(), f) }

// candidates returns the indexes of the overrides that may match, in order. Usually there are none.
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

// matching calls f for the overrides that match, in order. Without a URL, only overrides that match the whole host
// count.
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

// hostnameOf returns a host without its port, brackets and final dot, as overrides match it.
func hostnameOf(host string) string {
	return strings.Trim(strings.TrimSuffix(item.HostnameOf(host), "."), "[]")
}

// ForHost returns the settings of a host. The host includes its port unless that is the scheme's default.
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
	fill(&h.Render, from.Render)
	fill(&h.RenderWait, from.RenderWait)
	fill(&h.Usage, from.Usage)
	if h.Proxies == nil {
		h.Proxies = from.Proxies
	}
}

// ForURL returns the settings of a canonical URL, without those of its host.
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

// An Applied is a setting of a URL that an override has set.
type Applied struct {
	Setting  string `json:"setting"` // name of the flag
	Value    string `json:"value"`   // as written, without secrets
	Override string `json:"override"`
}

// Explain returns the settings that overrides set for a URL and its host, in the order of the overrides.
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

// Scopes returns the scopes in the overrides.
func (o *Overrides) Scopes() (modes []weburl.Mode) {
	for _, one := range o.All() {
		if one.Scope != nil && !slices.Contains(modes, *one.Scope) {
			modes = append(modes, *one.Scope)
		}
	}
	return modes
}

// depthLimit returns the maximum depth of a URL; negative: no limit.
func (r *Rules) depthLimit(u weburl.URL) int {
	if own := r.Overrides.ForURL(u).Depth; own != nil {
		return *own
	}
	return r.MaxDepth
}

// LimitsDepth reports whether any override limits the depth.
func (o *Overrides) LimitsDepth() bool {
	return o.Any(func(one *Override) bool { return one.Depth != nil && *one.Depth >= 0 })
}

// LimitsPages reports whether any override limits the pages of a host.
func (o *Overrides) LimitsPages() bool {
	return o.Any(func(one *Override) bool { return one.PagesPerHost != nil && *one.PagesPerHost > 0 })
}

// LimitsBytes reports whether any override limits the bytes of a host.
func (o *Overrides) LimitsBytes() bool {
	return o.Any(func(one *Override) bool { return one.BytesPerHost != nil && *one.BytesPerHost > 0 })
}

// Recrawls reports whether any override schedules revisits.
func (o *Overrides) Recrawls() bool {
	return o.Any(func(one *Override) bool { return one.Recrawl != nil && one.Recrawl.Every > 0 })
}

// Tracked describes the data that a crawl has tracked since its start, which some overrides need.
type Tracked struct {
	Scope          *weburl.Scope
	Depth, Recrawl bool // whether shorter paths to a URL, and times of next visits, are tracked
	Pages, Bytes   bool // whether they are counted by host
	PerHost        int  // maximum connections of a host
	Renders        bool // the crawl has a browser
}

// CheckRuntime returns an error if an override cannot be set while a crawl runs because the crawl does not track the
// data that it needs.
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
	case o.Renders() && !k.Renders:
		return errors.New("an override with render needs a browser, and this crawl was started without one: set it " +
			"when the crawl is started again")
	}
	for _, one := range all {
		if one.PerHost != nil && *one.PerHost > k.PerHost {
			return fmt.Errorf("an override with per-host %d: the crawl has begun with %d connections a host; a higher "+
				"number takes effect only when the crawl is started again", *one.PerHost, k.PerHost)
		}
	}
	return nil
}

func needsRestart(what string) error {
	return fmt.Errorf("an override with %s needs data that this crawl does not track: set it when the crawl is "+
		"started again", what)
}

func number[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
