package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// connect connects, however long that takes until ctx ends, unless waiting will not help.
func (c *Cluster) connect(ctx context.Context) error {
	opts, urls, err := c.options()
	if err != nil {
		return err
	}
	err = c.patiently(ctx, func() error {
		if c.server == nil && c.cfg.NATS == "" {
			if err := c.cfg.probeAll(ctx); err != nil {
				return err
			}
		}
		c.conn, err = nats.Connect(urls, opts...)
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
			return forGood{err}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	if err := tooSmall(c.conn.ConnectedUrlRedacted(), c.conn.MaxPayload()); err != nil {
		return err
	}
	c.js, err = jetstream.New(c.conn)
	return err
}

// patiently calls f until it succeeds, ctx ends, or f fails for good; every few seconds it says what is waited for.
func (c *Cluster) patiently(ctx context.Context, f func() error) error {
	began := time.Now()
	said := began
	for {
		err := f()
		if err == nil || isForGood(err) {
			return err
		}
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			c.log("waiting for %v: %v", time.Since(began).Round(time.Second), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("given up after %v: %w", time.Since(began).Round(time.Second), err)
		case <-time.After(pause):
		}
	}
}

func (c *Cluster) options() (opts []nats.Option, urls string, err error) {
	t := c.cfg.Timings
	opts = []nats.Option{
		nats.Name(c.cfg.Name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(t.Reconnect),
		nats.ReconnectJitter(t.Reconnect, t.Reconnect),
		nats.ReconnectBufSize(-1), // what cannot be sent now is not sent later, when it may do harm
		nats.PingInterval(t.Ping),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(3 * t.Ping), // or who sends to a server that is gone waits for a minute, and no ping finds out meanwhile
		nats.Timeout(5 * time.Second),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.log("NATS: %v", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log("the connection to the cluster is lost: %v", err)
			}
		}),
		nats.ReconnectHandler(func(n *nats.Conn) { c.log("connected again, to %s", n.ConnectedAddr()) }),
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
