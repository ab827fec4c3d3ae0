package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// connect connects to the cluster. It retries until ctx ends or an error is permanent.
func (c *Cluster) connect(ctx context.Context) error {
	err := c.retry(ctx, func() error {
		if c.server == nil && c.cfg.NATS == "" {
			all := c.cfg.addresses()
			away, wrong := c.cfg.probeAll(ctx, all)
			if errors.Is(wrong, ErrShared) && c.adopts {
				c.cfg.Shared = true
				away, wrong = c.cfg.probeAll(ctx, all)
			}
			if wrong != nil {
				return wrong
			}
			if len(away) == len(all) { // a client needs only one server
				return &AbsentError{Servers: len(all), Unreachable: away}
			}
		}
		opts, urls, err := c.options()
		if err != nil {
			return permanentError{err}
		}
		c.conn, err = nats.Connect(urls, opts...)
		switch {
		case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
			return permanentError{withDescription(err)}
		case err != nil && c.cfg.NATS != "":
			return &AddressError{redacted(c.cfg.NATS), &noAnswer{err}}
		}
		return withDescription(err)
	})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if err := checkPayload(c.conn.ConnectedUrlRedacted(), c.conn.MaxPayload()); err != nil {
		return err
	}
	c.js, err = jetstream.New(c.conn)
	if err != nil {
		return err
	}
	_, _ = c.findShared(ctx) // the first request reports the error
	return nil
}

// retry calls f until it succeeds, ctx ends, or the error is permanent. Every few seconds it logs the last error. An
// error of f that only reports the end of ctx does not replace an earlier one.
func (c *Cluster) retry(ctx context.Context, f func() error) error {
	began := time.Now()
	logged := began
	var last error
	for {
		err := f()
		if err == nil || isPermanent(err) {
			return err
		}
		if last == nil || !isOver(ctx) {
			last = err
		}
		if !isOver(ctx) && time.Since(logged) > 2*time.Second {
			logged = time.Now()
			c.log("still waiting after %v: %s", time.Since(began).Round(time.Second), describe(last))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %v: %w", time.Since(began).Round(time.Second), last)
		case <-time.After(pause):
		}
	}
}

// isOver reports whether ctx has ended or its deadline has passed. A connection with the same deadline may fail a moment
// before ctx reports its end.
func isOver(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(deadline)
}

// redacted removes the passwords from a list of URLs.
func redacted(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil {
			all[i] = u.Redacted()
		}
	}
	return strings.Join(all, ",")
}

func (c *Cluster) options() (opts []nats.Option, urls string, err error) {
	t := c.cfg.Timings
	opts = []nats.Option{
		nats.Name(c.cfg.Name),
		nats.MaxReconnects(-1),
		nats.SyncQueueLen(answerQueue),
		nats.ReconnectWait(t.Reconnect),
		nats.ReconnectJitter(t.Reconnect, t.Reconnect),
		nats.ReconnectBufSize(-1), // a message that cannot be sent now must not be sent later
		nats.PingInterval(t.Ping),
		nats.MaxPingsOutstanding(2),
		// otherwise a send to a dead server blocks for a minute, without pings
		nats.FlusherTimeout(3 * t.Ping),
		nats.Timeout(5 * time.Second),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.log("connection to the cluster: %s", describe(err))
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log("lost the connection to the cluster: %s", describe(err))
			}
		}),
		nats.ReconnectHandler(func(n *nats.Conn) { c.log("reconnected to %s", n.ConnectedAddr()) }),
	}
	if c.cfg.NATS != "" {
		return opts, c.cfg.NATS, nil
	}
	user, password, err := c.cfg.login()
	if err != nil {
		return nil, "", err
	}
	opts = append(opts, nats.UserInfo(user, password))
	if c.server != nil {
		return append(opts, nats.InProcessServer(c.server)), nats.DefaultURL, nil
	}
	if !c.cfg.Secret.IsZero() {
		_, tls, err := c.cfg.Secret.TLS()
		if err != nil {
			return nil, "", err
		}
		opts = append(opts, nats.Secure(tls), nats.TLSHandshakeFirst())
	}
	var all []string
	for _, address := range c.cfg.addresses() {
		all = append(all, "nats://"+address)
	}
	return opts, strings.Join(all, ","), nil
}
