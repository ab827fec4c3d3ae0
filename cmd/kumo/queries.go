package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire"
	"kumo/internal/app/wire/places"
	"kumo/internal/base/settings"
	"kumo/internal/base/weburl"
	"kumo/internal/view/text"
)

// The commands that inspect a crawl, whether it runs or not.

const viewLong = `

The crawl may be running: then the command queries it. Otherwise the command reads its folder; a
crawl that is started during that time waits.`

func hostsCommand() *cobra.Command {
	var n int
	cmd := newViewCommand("hosts [FOLDER]", "List the hosts of a crawl with pending URLs", nil,
		func(l *viewCommand, _ []string) error {
			return text.Hosts(l.w, l.json, l.crawlView.Hosts(l.ctx, n))
		})
	cmd.Flags().VarP(newLimitFlag(&n, 20), "number", "n", "number of hosts to list, those with most URLs first")
	cmd.Long = "List the hosts of a crawl with pending URLs, their next visit, and the reason for waiting." + viewLong
	return orArgument(cmd)
}

func queueCommand() *cobra.Command {
	var n int
	cmd := newViewCommand("queue HOST", "List the pending URLs of a host", cobra.ExactArgs(1),
		func(l *viewCommand, args []string) error {
			host, err := hostArg(args[0])
			if err != nil {
				return err
			}
			if err := l.checkHost(host); err != nil {
				return err
			}
			return text.Queue(l.w, l.json, l.crawlView.Queue(l.ctx, host, n))
		})
	cmd.Flags().VarP(
		newLimitFlag(&n, 20),
		"number",
		"n",
		"number of URLs to list, at most 10,000, in the order in which they are "+
			"to be fetched",
	)
	cmd.Long = "List the pending URLs of a host: example.com, or example.com:8080." + viewLong
	return cmd
}

func seenCommand() *cobra.Command {
	var n int
	var prefix string
	var cmd *cobra.Command
	cmd = newViewCommand("seen [--prefix URL]", "List the known URLs that begin with a prefix", cobra.MaximumNArgs(1),
		func(l *viewCommand, args []string) error {
			prefix += strings.Join(args, "")
			listed, err := text.Known(l.w, l.json, l.crawlView.Seen(l.ctx, prefix, n))
			if err == nil && listed == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "kumo: the crawl knows no URL that begins with %q\n", prefix)
			}
			return err
		})
	cmd.Flags().StringVar(&prefix, "prefix", "", "list URLs that begin with `URL`; may also be given as an argument")
	cmd.Flags().VarP(newLimitFlag(&n, 100), "number", "n", "number of URLs to list, in order")
	cmd.Long = "List the known URLs of a crawl that begin with a prefix, each with its state, depth, status " +
		"and time." + viewLong
	return cmd
}

func topCommand() *cobra.Command {
	var n int
	by := "url"
	cmd := newViewCommand("top [FOLDER]", "List the most important URLs, or hosts, of a crawl", nil,
		func(l *viewCommand, _ []string) error {
			bySite := by == "host"
			return text.Top(l.w, l.json, bySite, l.crawlView.Top(l.ctx, n, bySite))
		})
	f := cmd.Flags()
	f.Var(setting.Choice(&by, []string{"url", "host"}), "by", "list URLs, or each host by its most important URL")
	f.VarP(newLimitFlag(&n, 20), "number", "n", "number of lines to list")
	cmd.Long = `List the most important of all known URLs of a crawl, fetched or not.

The importance follows from --order: links found so far, or depth. --prefer is not included. The
command reads all known URLs, which takes some seconds for each ten million. With --by host there is
a line for each scheme and host: its most important URL, the sum over all its known URLs, their
number, and how many of them were not fetched.` + viewLong
	return orArgument(cmd)
}

// hostArg returns a host in the form of the crawl: with the port, unless it is the scheme's default. A URL stands for
// its host.
func hostArg(arg string) (string, error) {
	raw := arg
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := weburl.Parse(raw)
	if err != nil || u.Host() == "" {
		return "", usagef("%q is not a host: name it as kumo hosts lists it, such as example.com or example.com:8080", arg)
	}
	return u.Canonical().Host(), nil
}

// checkHost returns an error if the crawl has no URL of a host.
func (l *viewCommand) checkHost(host string) error {
	for _, scheme := range []string{"http", "https"} {
		for _, err := range l.crawlView.Seen(l.ctx, scheme+"://"+host+"/", 1) {
			return err
		}
	}
	for _, err := range l.crawlView.Queue(l.ctx, host, 1) {
		return err
	}
	return fmt.Errorf("the crawl does not know the host %q: name it as kumo hosts lists it, with its port if it has one",
		host)
}

// A viewCommand is the context of a command that inspects a crawl.
type viewCommand struct {
	ctx       context.Context
	w         io.Writer
	json      bool
	crawlView *inspect.View
}

// newViewCommand makes a command that inspects the crawl in --out.
func newViewCommand(
	use, short string,
	args cobra.PositionalArgs,
	run func(*viewCommand, []string) error,
) *cobra.Command {
	var dir string
	l := &viewCommand{}
	cmd := &cobra.Command{Use: use, Short: short, Args: usageArgs(args)}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		l.ctx, l.w = cmd.Context(), cmd.OutOrStdout()
		if l.crawlView, err = openView(l.ctx, dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.crawlView.Close()) }()
		return run(l, args)
	}
	cmd.Flags().StringVarP(&dir, "out", "o", "", "the crawl's `FOLDER` (required)")
	cmd.Flags().BoolVar(&l.json, "json", false, "print JSON, one object per line")
	return cmd
}

func openView(ctx context.Context, dir string) (*inspect.View, error) {
	if dir == "" {
		return nil, usagef("which crawl? name its folder with --out")
	}
	if places.IsURL(dir) {
		return nil, usagef("%s is a storage location: name the crawl's folder on this machine, which has its queues", dir)
	}
	if _, err := savedIn(dir); err != nil {
		return nil, err
	}
	return wire.Inspect(ctx, dir, func() (*job.Job, error) { return savedJob(ctx, dir) })
}

func savedIn(dir string) ([]settings.Setting, error) {
	saved, err := folder.ReadSettings(dir)
	if err == nil && len(saved) == 0 {
		err = usagef("%s: there is no crawl", dir)
	}
	return saved, err
}

// savedOptions returns the options of the crawl in dir, from its settings and additional flags.
func savedOptions(ctx context.Context, dir string, more ...string) (*options, error) {
	o := &options{noFetch: true}
	flags := crawlFlags(o)
	if err := flags.Parse(append([]string{"--out", dir}, more...)); err != nil {
		return nil, err
	}
	return o, o.resolve(ctx, flags, nil)
}

func savedJob(ctx context.Context, dir string) (*job.Job, error) {
	o, err := savedOptions(ctx, dir)
	if o == nil {
		return nil, err
	}
	return &o.Job, err
}
