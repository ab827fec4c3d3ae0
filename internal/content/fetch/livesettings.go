package fetch

import (
	"net/http"
	"time"
)

// LiveSettings are the settings of Config that can change at any time. Zero values mean the defaults.
type LiveSettings struct {
	UserAgent      string
	ConnectTimeout time.Duration // a lookup in progress keeps its value
	Timeout        time.Duration
}

// SetLiveSettings changes the settings of all exchanges that start from now on.
func (c *Client) SetLiveSettings(m LiveSettings) {
	cfg := c.baseConfig
	cfg.UserAgent, cfg.ConnectTimeout, cfg.Timeout = m.UserAgent, m.ConnectTimeout, m.Timeout
	c.live.Store(newLiveSettings(cfg.withDefaults()))
}

// liveSettings are the current settings. They are immutable.
type liveSettings struct {
	agent   string
	connect time.Duration
	timeout time.Duration
	maxTime time.Duration
	public  fields // shared by all requests
	trusted fields // shared by the requests to trusted hosts
}

func newLiveSettings(cfg Config) *liveSettings {
	public, trusted := cfg.headers()
	return &liveSettings{
		cfg.UserAgent,
		cfg.ConnectTimeout,
		cfg.Timeout,
		cfg.MaxTime,
		newFields(public),
		newFields(trusted),
	}
}

// fieldsFor returns the shared fields for a request, or its own.
func (m *liveSettings) fieldsFor(req *Request) *fields {
	switch {
	case req.Header != nil:
		own := make(http.Header, len(req.Header))
		for name, values := range req.Header {
			if name = http.CanonicalHeaderKey(name); name != cookieField { // sent in one Cookie field with the other cookies
				own[name] = append(own[name], values...)
			}
		}
		f := newFields(own)
		return &f
	case req.Trusted:
		return &m.trusted
	}
	return &m.public
}
