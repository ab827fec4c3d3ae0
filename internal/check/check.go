// Package check shows each of kumo's readers at work: what it makes of one input, as plain data that is easy to print and to
// compare. The functions are the crawl's own; nothing is read here in another way.
package check

import (
	"kumo/internal/mime"
	"kumo/internal/parse"
	"kumo/internal/robots"
	"kumo/internal/weburl"
)

// RobotsIn asks whether an agent may fetch a URL.
type RobotsIn struct {
	Robots []byte `json:"robots_b64"`
	Agent  string `json:"ua"`
	URL    string `json:"url"`
}

// RobotsOut is the verdict.
type RobotsOut struct {
	Allowed    bool     `json:"allowed"`
	Rule       string   `json:"rule"`        // the line that decided, "" if none did
	CrawlDelay float64  `json:"crawl_delay"` // seconds, 0 if none is asked for
	Sitemaps   []string `json:"sitemaps"`
}

// Robots reads a robots.txt.
func Robots(in RobotsIn) (RobotsOut, error) {
	rules := robots.Parse(in.Robots, in.Agent)
	out := RobotsOut{Sitemaps: append([]string{}, rules.Sitemaps()...)}
	out.Allowed, out.Rule = rules.Match(robots.Target(in.URL))
	if delay, ok := rules.Delay(); ok {
		out.CrawlDelay = delay.Seconds()
	}
	return out, nil
}

// URLIn is a reference and what it is resolved against.
type URLIn struct {
	Input string `json:"input"`
	Base  string `json:"base"`
}

// URLOut is the URL as a browser would have it.
type URLOut struct {
	Href   *string `json:"href"` // null if it is no URL
	Reason string  `json:"reason,omitempty"`
	Host   string  `json:"host,omitempty"`
	Domain string  `json:"domain,omitempty"`
}

// URL resolves a reference.
func URL(in URLIn) (URLOut, error) {
	u, err := resolve(in)
	if err != nil {
		return URLOut{Reason: err.Error()}, nil
	}
	href := u.String()
	return URLOut{Href: &href, Host: u.Host(), Domain: weburl.Domain(u.Hostname())}, nil
}

func resolve(in URLIn) (weburl.URL, error) {
	if in.Base == "" {
		return weburl.Parse(in.Input)
	}
	base, err := weburl.Parse(in.Base)
	if err != nil {
		return base, err
	}
	return base.Resolve(in.Input)
}

// CanonIn is a URL.
type CanonIn struct {
	URL string `json:"url"`
}

// CanonOut is its canonical form.
type CanonOut struct {
	Canon string `json:"canon"`
}

// Canon gives a URL's canonical form.
func Canon(in CanonIn) (CanonOut, error) {
	u, err := weburl.Parse(in.URL)
	if err != nil {
		return CanonOut{}, err
	}
	return CanonOut{u.Canonical().String()}, nil
}

// ValueIn is the value of an attribute or a field.
type ValueIn struct {
	Value string `json:"value"`
}

// RefreshOut is what a refresh says.
type RefreshOut struct {
	OK    bool   `json:"ok"`
	Delay int    `json:"delay"` // seconds
	URL   string `json:"url"`   // as it stands there
}

// Refresh reads a meta refresh.
func Refresh(in ValueIn) (out RefreshOut, err error) {
	out.Delay, out.URL, out.OK = parse.ParseRefresh(in.Value)
	return out, nil
}

// SrcsetOut lists a srcset's images.
type SrcsetOut struct {
	Candidates []Candidate `json:"candidates"`
}

// A Candidate is one of them.
type Candidate struct {
	URL        string `json:"url"`
	Descriptor string `json:"descriptor"`
}

// Srcset reads a srcset attribute.
func Srcset(in ValueIn) (SrcsetOut, error) {
	out := SrcsetOut{Candidates: []Candidate{}}
	for _, c := range parse.ParseSrcset(in.Value) {
		out.Candidates = append(out.Candidates, Candidate(c))
	}
	return out, nil
}

// MIMEOut is a media type, taken apart.
type MIMEOut struct {
	OK         bool              `json:"ok"`
	Type       string            `json:"type"`
	Parameters map[string]string `json:"parameters"`
}

// MIME reads a media type.
func MIME(in ValueIn) (MIMEOut, error) {
	t, ok := mime.Parse(in.Value)
	out := MIMEOut{OK: ok, Parameters: map[string]string{}}
	if ok {
		out.Type = t.Main + "/" + t.Sub
	}
	for _, p := range t.Params {
		out.Parameters[p.Name] = p.Value
	}
	return out, nil
}
