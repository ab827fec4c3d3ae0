package natsbus

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// check says what is wrong with a configuration before anything is tried.
func (c *Config) check() error {
	if !isWord(c.Crawl) {
		return fmt.Errorf("the crawl's name %q is not one word of letters, digits, - and _", c.Crawl)
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
		return fmt.Errorf("%d servers: there must be 1, 3 or 5, so that a majority is told from the rest", n)
	}
	if c.Replicas == 0 {
		c.Replicas = max(len(c.Servers), 1)
	}
	if len(c.Servers)+len(c.Join) == 0 {
		return errors.New("neither an address to listen on, nor servers, nor one to join is given")
	}
	if c.runsServer() && c.Dir == "" {
		return errors.New("a node with a server needs a directory for it")
	}
	for _, address := range c.addresses() {
		if err := c.checkAddress(address); err != nil {
			return err
		}
	}
	return nil
}

// runsServer reports that this process runs a server.
func (c *Config) runsServer() bool { return c.NATS == "" && slices.Contains(c.Servers, c.Listen) }

// addresses are all addresses of servers that are known, each once.
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
		return fmt.Errorf("the address %s: the port must be between 1 and 65534, and the next one is used, too", address)
	}
	if c.Secret.IsZero() && !isLoopback(host) {
		return fmt.Errorf("the address %s is not of this machine alone: between machines the cluster needs a secret, "+
			"which kumo secret new makes", address)
	}
	return nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("the address %q is not host:port", address)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, fmt.Errorf("the address %q has no port number", address)
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
