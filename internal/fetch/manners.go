package fetch

import "time"

// Manners are what of Config can be other at any time. Their zero values stand for the defaults.
type Manners struct {
	UserAgent      string
	ConnectTimeout time.Duration // the name lookup keeps the one that it began with
	Timeout        time.Duration
}

// SetManners has exchanges go otherwise that begin from now on.
func (c *Client) SetManners(m Manners) {
	cfg := c.given
	cfg.UserAgent, cfg.ConnectTimeout, cfg.Timeout = m.UserAgent, m.ConnectTimeout, m.Timeout
	c.manners.Store(newManners(cfg.withDefaults()))
}

// manners are those in effect. They are never changed.
type manners struct {
	agent   string
	connect time.Duration
	timeout time.Duration
	maxTime time.Duration
	public  fields // shared by all requests
	trusted fields // shared by the requests to trusted hosts
}

func newManners(cfg Config) *manners {
	public, trusted := cfg.headers()
	return &manners{cfg.UserAgent, cfg.ConnectTimeout, cfg.Timeout, cfg.MaxTime, newFields(public), newFields(trusted)}
}
