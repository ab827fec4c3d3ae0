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
	wait       time.Duration // for the cluster to answer
}

// defaultAddress is where a node listens that is told nothing else, and where commands look for one.
const defaultAddress = "127.0.0.1:7070"

func (c *clusterFlags) bind(f *pflag.FlagSet, join string) {
	f.StringVar(&c.crawl, "crawl", "", "the crawl's `NAME`: letters, digits, - and _ (needed)")
	f.StringSliceVar(&c.join, "join", nil, join)
	f.StringVar(&c.nats, "nats", "", "reach the crawl through the NATS at this `URL`, which somebody else runs, "+
		"instead of nodes' own servers")
	f.StringVar(&c.secretFile, "secret-file", "", "read the cluster's secret from `FILE` (default: the environment "+
		"variable "+secretVariable+"; neither: this machine only)")
}

func (c *clusterFlags) bindCommand(f *pflag.FlagSet) {
	c.bind(f, joinUsage)
	durationVar(f, &c.wait, "wait", clusterWait, "wait this long for the cluster to answer; while it elects a new "+
		"leader it does not for some seconds")
}

func (c *clusterFlags) options(warn func(string)) (o cluster.NodeOptions, err error) {
	if err := checkCrawlName(c.crawl); err != nil {
		return o, err
	}
	if err := c.checkJoin(); err != nil {
		return o, err
	}
	if c.nats != "" && len(c.join) > 0 {
		return o, usagef("--join names nodes that run servers, and with --nats none does: give one of them")
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

// checkCrawlName refuses what is not one word: the name is part of what nodes call each other by.
func checkCrawlName(name string) error {
	switch {
	case name == "":
		return usagef("which crawl? name it with --crawl")
	case node.CrawlWord(name) != name || len(name) > 64:
		return usagef("--crawl %q: a name of up to 64 letters, digits, - and _ is wanted", name)
	}
	return nil
}

// clusterWait is how long a command waits for somebody to answer.
const clusterWait = 12 * time.Second

// viewPatience is how long a command that only looks waits for a majority of the servers.
const viewPatience = 3 * time.Second

// control connects to the cluster, calls f, and lets it go.
func (c *clusterFlags) control(ctx context.Context, stderr io.Writer, f func(context.Context,
	admin.Client) error) error {
	return c.connect(ctx, stderr, cluster.OpenClient, f)
}

// view is control for what can be looked at while too few servers run, too.
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

// userAtHost is who types, as others may know them.
func userAtHost() string {
	machine, _ := os.Hostname()
	who, err := user.Current()
	if err != nil {
		return machine
	}
	return who.Username + "@" + machine
}

// resolveServers are the options with where a crawl is looked for that nobody has named.
func (c *clusterFlags) resolveServers(log *slog.Logger) (cluster.NodeOptions, error) {
	o, err := c.options(func(s string) { log.Warn(s) })
	if o.NATS == "" && len(o.Join) == 0 {
		o.Join = []string{defaultAddress}
	}
	o.Log = log
	return o, err
}

// adviseUnreachable adds to an error what to do where simply nobody is there.
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

// serversOf are the addresses of the nodes with servers: the first n of join, or listen alone. It is nil for a node
// that only knows whom to join.
func serversOf(listen string, join []string, n int) ([]string, error) {
	switch {
	case n != 0 && !slices.Contains([]int{1, 3, 5}, n):
		return nil, usagef("--servers is %d: there must be 1, 3 or 5, so that a majority is told from the rest", n)
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

// hostName is this machine's name as a node's.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	name, _, _ = strings.Cut(name, ".")
	return node.CrawlWord(name)
}
