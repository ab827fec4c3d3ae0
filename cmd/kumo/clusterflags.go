package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kumo/internal/app/admin"
	"kumo/internal/app/node"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/advice"
)

type clusterFlags struct {
	crawl      string
	join       []string
	nats       string
	secretFile string
	wait       time.Duration // timeout for the cluster's answer
	creates    bool          // the command may add the crawl to servers that several crawls share
	strategy   string        // of a crawl that is added; "": the default
	splitter   string
}

// defaultAddress is the default listen address of a node, and the default address of commands that look for a node.
const defaultAddress = "127.0.0.1:7070"

func (c *clusterFlags) bind(f *pflag.FlagSet, join string) {
	f.StringVar(&c.crawl, "crawl", "", "the crawl's `NAME`: letters, digits, - and _ (required)")
	f.StringSliceVar(&c.join, "join", nil, join)
	f.StringVar(&c.nats, "nats", "", "reach the crawl through an external NATS server at this `URL`, "+
		"instead of the nodes' own servers")
	f.StringVar(&c.secretFile, "secret-file", "", "read the cluster's secret from `FILE` (default: the environment "+
		"variable "+secretVariable+"; neither: this machine only)")
}

func (c *clusterFlags) bindCommand(f *pflag.FlagSet) {
	c.bind(f, joinUsage)
	durationVar(f, &c.wait, "wait", clusterWait, "timeout for the cluster's answer; while it elects a new "+
		"leader, it does not answer for some seconds")
}

func (c *clusterFlags) options(warn func(string)) (o cluster.NodeOptions, err error) {
	if err := checkCrawlName(c.crawl); err != nil {
		return o, err
	}
	o.Creates, o.Strategy, o.Splitter, o.By = c.creates, c.strategy, c.splitter, userAtHost()
	return c.connection(o, warn)
}

// connection adds the options for the connection.
func (c *clusterFlags) connection(o cluster.NodeOptions, warn func(string)) (_ cluster.NodeOptions, err error) {
	if err := c.checkJoin(); err != nil {
		return o, err
	}
	if c.nats != "" && len(c.join) > 0 {
		return o, usagef("--join names nodes that run servers, and with --nats none does: give only one of them")
	}
	o.Secret, err = readSecret(c.secretFile, warn)
	o.NATS, o.Join = c.nats, c.join
	return o, err
}

func (c *clusterFlags) checkJoin() error {
	for _, address := range c.join {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return usagef("--join %q: want HOST:PORT, such as %s", address, defaultAddress)
		}
	}
	return nil
}

// checkCrawlName returns an error unless the name is a single word. Nodes use it in their names for each other.
func checkCrawlName(name string) error {
	switch {
	case name == "":
		return usagef("which crawl? name it with --crawl")
	case node.CrawlWord(name) != name || len(name) > 64:
		return usagef("--crawl %q: give a name of up to 64 letters, digits, - and _", name)
	}
	return nil
}

// clusterWait is the default timeout of a command for the cluster's answer.
const clusterWait = 12 * time.Second

// viewPatience is how long a read-only command waits for a majority of the servers.
const viewPatience = 3 * time.Second

// control connects to the cluster, calls f, and disconnects.
func (c *clusterFlags) control(ctx context.Context, stderr io.Writer, f func(context.Context,
	admin.Client) error) error {
	return c.connect(ctx, stderr, cluster.OpenClient, f)
}

// view is like control, for queries that also work without a majority of the servers.
func (c *clusterFlags) view(ctx context.Context, stderr io.Writer, f func(context.Context, admin.Client) error) error {
	return c.connect(ctx, stderr, viewing, f)
}

func viewing(ctx context.Context, crawl string, o cluster.NodeOptions) (admin.Client, error) {
	return cluster.OpenView(ctx, crawl, o, viewPatience)
}

type opener func(ctx context.Context, crawl string, o cluster.NodeOptions) (admin.Client, error)

func (c *clusterFlags) connect(ctx context.Context, stderr io.Writer, open opener,
	f func(context.Context, admin.Client) error) (err error) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	o, err := c.resolveServers(log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	control, err := open(ctx, c.crawl, o)
	if err != nil {
		return c.adviseUnreachable(err, &o)
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	return f(ctx, control.As(userAtHost()))
}

// userAtHost returns the user and the machine, for the crawl's record of actions.
func userAtHost() string {
	machine, _ := os.Hostname()
	who, err := user.Current()
	if err != nil {
		return machine
	}
	return who.Username + "@" + machine
}

// resolveServers returns the options, with the default address if no server is named.
func (c *clusterFlags) resolveServers(log *slog.Logger) (cluster.NodeOptions, error) {
	o, err := c.options(func(s string) { log.Warn(s) })
	return c.withDefault(o, log), err
}

func (c *clusterFlags) withDefault(o cluster.NodeOptions, log *slog.Logger) cluster.NodeOptions {
	if o.NATS == "" && len(o.Join) == 0 {
		o.Join = []string{defaultAddress}
	}
	o.Log = log
	return o
}

// adviseUnreachable adds advice to an error if no node can be reached.
func (c *clusterFlags) adviseUnreachable(err error, o *cluster.NodeOptions) error {
	switch {
	case !cluster.IsNoAnswer(err):
		return cluster.Advise(err)
	case o.NATS != "":
		return advice.With(err, "check that it runs, the URL in --nats, and the firewall")
	}
	return advice.With(err, fmt.Sprintf("nobody runs the crawl %q at %s: begin with kumo node --crawl %s, or name a "+
		"node of it by --join",
		c.crawl, strings.Join(o.Join, ", "), c.crawl))
}

// serversOf returns the addresses of the nodes that run servers: the first n of join, or only listen. It returns nil
// for a node that only joins others.
func serversOf(listen string, join []string, n int) ([]string, error) {
	switch {
	case n != 0 && !slices.Contains([]int{1, 3, 5}, n):
		return nil, usagef("--servers is %d: there must be 1, 3 or 5, so that a majority exists", n)
	case len(join) == 0 && n > 1:
		return nil, usagef("--servers %d: name the addresses of all %d with --join, in the same order on all nodes", n, n)
	case len(join) == 0:
		return []string{listen}, nil
	case n > len(join):
		return nil, usagef("--servers %d: --join names only %d: name the addresses of all %d there, in the same order on "+
			"all nodes", n, len(join), n)
	case n > 0:
		return join[:n], nil
	case listen == join[0]:
		return join[:1], nil
	}
	return nil, nil
}

// hostName returns the machine's name in the form of a node name.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	name, _, _ = strings.Cut(name, ".")
	return node.CrawlWord(name)
}
