package natsbus

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// check validates a configuration, and sets defaults.
func (c *Config) check() error {
	if c.Shared {
		c.Crawl = sharedName
	} else if !isWord(c.Crawl) {
		return fmt.Errorf("crawl name %q: want one word of letters, digits, - and _", c.Crawl)
	}
	c.Timings = c.Timings.withDefaults()
	if c.NATS != "" {
		c.Replicas = max(c.Replicas, 1)
		return nil
	}
	if len(c.Servers) == 0 && c.Listen != "" && len(c.Join) == 0 {
		c.Servers = []string{c.Listen}
	}
	if n := len(c.Servers); n > 0 && n != 1 && n != 3 && n != 5 {
		return fmt.Errorf("%d servers: want 1, 3 or 5, so that a majority is possible", n)
	}
	if c.Replicas == 0 {
		c.Replicas = max(len(c.Servers), 1)
	}
	if len(c.Servers)+len(c.Join) == 0 {
		return errors.New("no way to reach a cluster: give one of --listen, --nats or --join")
	}
	if c.runsServer() && c.Dir == "" {
		return errors.New("a node with a server needs a directory")
	}
	for _, address := range c.addresses() {
		if err := c.checkAddress(address); err != nil {
			return err
		}
	}
	return nil
}

// runsServer reports whether this process runs a server.
func (c *Config) runsServer() bool { return c.NATS == "" && slices.Contains(c.Servers, c.Listen) }

// addresses returns all known addresses of servers, each once.
func (c *Config) addresses() []string {
	all := slices.Concat(c.Servers, c.Join)
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *Config) checkAddress(address string) error {
	host, port, err := splitAddress(address)
	if err != nil {
		return err
	}
	if port < 1 || port > 65534 {
		return fmt.Errorf("address %s: want a port from 1 to 65534, as the next port is used, too", address)
	}
	if c.Secret.IsZero() && !isLoopback(host) {
		return fmt.Errorf("address %s is not a loopback address: between machines the cluster needs a secret; "+
			"create one with kumo secret new", address)
	}
	return nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: want host:port", address)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, fmt.Errorf("address %q has no port number", address)
	}
	return host, port, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func isWord(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", r)
	})
}
