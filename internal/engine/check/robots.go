package check

import (
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
)

// RobotsIn asks whether an agent may fetch a URL.
type RobotsIn struct {
	Robots []byte `json:"robots_b64" need:"robots_b64"`
	Agent  string `json:"ua"`
	URL    string `json:"url" need:"url"`

	Status int `json:"-"` // what /robots.txt was answered with, 0 for a file, which is as good as 200
}

// RobotsOut is the verdict.
type RobotsOut struct {
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"` // the line that decided, "" if none did
	// seconds between two requests, by Crawl-delay or else Request-rate; 0 if none is asked for
	CrawlDelay float64  `json:"crawl_delay"`
	Sitemaps   []string `json:"sitemaps"`

	RequestRate []Rate       `json:"request_rate,omitempty"`
	CleanParams []CleanParam `json:"clean_params,omitempty"`
	Status      int          `json:"status,omitempty"` // as in RobotsIn
}

// A Rate is a Request-rate line.
type Rate struct {
	Requests float64 `json:"requests"`
	Seconds  float64 `json:"seconds"`
	Hours    string  `json:"hours,omitempty"` // of the day, UTC: "0800-1700"; "" for all day
}

// A CleanParam is a Clean-param line: parameters that mean nothing on paths like this.
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
	return out, nil
}
