// Package check runs each of kumo's parsers on one input and returns the result as plain data. The results are easy to
// compare, and the package also formats them as text for people.
//
// It calls the crawl's own functions, so the result is the same as in a crawl.
package check

import (
	"kumo/internal/base/weburl"
	"kumo/internal/content/parse"
)

// URLIn is a reference and its base URL.
type URLIn struct {
	Input string `json:"input" need:"input"`
	Base  string `json:"base"`
}

// URLOut is the resolved URL, as in a browser.
type URLOut struct {
	Href   *string `json:"href"` // null if the reference is not a URL
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

// CanonIn is a URL and optional rewriting rules.
type CanonIn struct {
	URL   string `json:"url" need:"url"`
	Rules string `json:"rules,omitempty"` // comma-separated
}

// CanonOut is its canonical form.
type CanonOut struct {
	Canon string `json:"canon"`
}

// Canon returns a URL's canonical form.
func Canon(in CanonIn) (CanonOut, error) {
	rules, err := weburl.ParseRules(in.Rules)
	if err != nil {
		return CanonOut{}, err
	}
	u, err := weburl.Parse(in.URL)
	if err != nil {
		return CanonOut{}, err
	}
	return CanonOut{rules.Apply(u.Canonical()).String()}, nil
}

// ValueIn is the value of an attribute or a field.
type ValueIn struct {
	Value string `json:"value" need:"value"`
}

// RefreshOut is a parsed meta refresh.
type RefreshOut struct {
	OK    bool   `json:"ok"`
	Delay int    `json:"delay"` // seconds
	URL   string `json:"url"`   // as written
}

// Refresh parses a meta refresh.
func Refresh(in ValueIn) (out RefreshOut, err error) {
	out.Delay, out.URL, out.OK = parse.ParseRefresh(in.Value)
	return out, nil
}

// SrcsetOut lists a srcset's images.
type SrcsetOut struct {
	Candidates []Candidate `json:"candidates"`
}

// A Candidate is one image of a srcset.
type Candidate struct {
	URL        string `json:"url"`
	Descriptor string `json:"descriptor"`
}

// Srcset parses a srcset attribute.
func Srcset(in ValueIn) (SrcsetOut, error) {
	out := SrcsetOut{Candidates: []Candidate{}}
	for _, c := range parse.ParseSrcset(in.Value) {
		out.Candidates = append(out.Candidates, Candidate(c))
	}
	return out, nil
}
