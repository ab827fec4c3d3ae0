package fetch

import (
	"net/http"
	"time"
)

// LiveSettings are what of Config can be other at any time. Their zero values stand for the defaults.
type LiveSettings struct {
	UserAgent      string
	ConnectTimeout time.Duration // the name lookup keeps the one that it began with
	Timeout        time.Duration
}

// SetLiveSettings has exchanges go otherwise that begin from now on.
func (c *Client) SetLiveSettings(m LiveSettings) {
	cfg := c.baseConfig
	cfg.UserAgent, cfg.ConnectTimeout, cfg.Timeout = m.UserAgent, m.ConnectTimeout, m.Timeout
	c.live.Store(newLiveSettings(cfg.withDefaults()))
}

// manners are those in effect. They are never changed.
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

// fieldsFor are those that a request has in common with others, or its own.
func (m *liveSettings) fieldsFor(req *Request) *fields {
	switch {
	case req.Header != nil:
		own := make(http.Header, len(req.Header))
		for name, values := range req.Header {
			if name = http.CanonicalHeaderKey(name); name != cookieField { // which goes into one with the others
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
