package check

import (
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/content/usage"
)

// RobotsIn is a robots.txt, an agent and a URL.
type RobotsIn struct {
	Robots []byte `json:"robots_b64" need:"robots_b64"`
	Agent  string `json:"ua"`
	URL    string `json:"url" need:"url"`

	Status int `json:"-"` // status of the answer; 0 for a file, the same as 200
}

// RobotsOut is whether the agent may fetch the URL, and the rules.
type RobotsOut struct {
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"` // the line that decided; "" if none did
	// seconds between two requests, by Crawl-delay or else Request-rate; 0 if there is neither
	CrawlDelay float64  `json:"crawl_delay"`
	Sitemaps   []string `json:"sitemaps"`

	RequestRate []Rate       `json:"request_rate,omitempty"`
	CleanParams []CleanParam `json:"clean_params,omitempty"`
	Status      int          `json:"status,omitempty"` // as in RobotsIn
	Usage       []Preference `json:"usage,omitempty"`  // usage preferences of the URL
}

// A Preference is a line about the use of pages.
type Preference struct {
	robots.Line
	page.Uses
	License string `json:"license,omitempty"`
}

// A Rate is a Request-rate line.
type Rate struct {
	Requests float64 `json:"requests"`
	Seconds  float64 `json:"seconds"`
	Hours    string  `json:"hours,omitempty"` // of the day, UTC: "0800-1700"; "": all day
}

// A CleanParam is a Clean-param line: parameters without meaning on paths like this one.
type CleanParam struct {
	Params []string `json:"params"`
	Path   string   `json:"path"`
}

// Robots reads a robots.txt as a crawl does: the URL is made canonical, and /robots.txt itself is always allowed.
func Robots(in RobotsIn) (RobotsOut, error) {
	rules := robots.Parse(in.Robots, in.Agent)
	if in.Status != 0 {
		rules = robots.FromStatus(in.Status, in.Robots, in.Agent)
	}
	out := RobotsOut{Sitemaps: append([]string{}, rules.Sitemaps()...), Status: in.Status}
	target := robots.Target(in.URL)
	if u, err := weburl.Parse(in.URL); err == nil {
		target = robots.Target(u.String())
	}
	out.Allowed, out.Rule = rules.Allowed(target)
	if delay, ok := rules.Delay(); ok {
		out.CrawlDelay = delay.Seconds()
	}
	for _, r := range rules.Rates() {
		out.RequestRate = append(out.RequestRate, Rate{r.Requests, r.Per.Seconds(), r.Hours()})
	}
	for _, c := range rules.CleanParams() {
		out.CleanParams = append(out.CleanParams, CleanParam{c.Params, c.Path})
	}
	for _, s := range rules.Usage(target) {
		one := usage.FromRobots(&s)
		out.Usage = append(out.Usage, Preference{s.Line, one.Uses, one.License})
	}
	return out, nil
}
