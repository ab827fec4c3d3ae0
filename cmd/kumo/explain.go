package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/session/nodes"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/app/wire/places"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/base/settings"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/seeds"
	"kumo/internal/view/text"
)

const explainLong = `Say what became of a URL in a crawl: whether it was met, when and where, which rule and which line of robots.txt hold for it,
where it waits and what its host waits for, when it was fetched and where its record lies, or why it was left out.` +
	viewLong + `

CRAWL is the crawl's folder, as --out is, or a place to which kumo crawl has brought its files (s3://bucket/prefix): then it
is what these say that is said, without what only the crawl's state knows.

In a crawl of several nodes it also says which node owns the URL's host, since when, and, with the strategy hub, who has failed to reach it and when
it is tried again. The node that owns it knows what became of the URL: look into that node's folder. With --crawl and without --out only the
owner is asked for, from any machine that reaches the cluster. Of a host that is nobody's yet it says how many links to it wait, and on how many
nodes: with the strategy balance hosts wait until the master gives them to the node that is done first.`

const explainExample = `  kumo explain https://example.com/a -o crawls/example.com
  kumo explain /a -o crawls/example.com    # a path, where all seeds are of one host
  kumo explain https://example.com/a -o crawls/news-b --join a.internal:7070 --secret-file cluster.secret
  kumo explain https://example.com/a --crawl news
  kumo explain s3://bucket/news https://example.com/a    # a crawl that lies in a place alone`

type explainer struct {
	viewCommand
	clusterFlags
	dir    string
	remote *uploads.Source // nil unless it lies in a place
	self   string          // the identity of the node whose folder it is
}

func explainCommand() *cobra.Command {
	e := &explainer{}
	cmd := &cobra.Command{Use: "explain [CRAWL] URL", Short: "Say why a URL was, or was not, crawled", Long: explainLong,
		Example: explainExample, Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.ctx, e.w = cmd.Context(), cmd.OutOrStdout()
			if len(args) == 2 {
				if e.dir != "" {
					return usagef("the crawl is named twice: %s and --out %s", args[0], e.dir)
				}
				e.dir = args[0]
			}
			return e.run(cmd.ErrOrStderr(), args[len(args)-1])
		}}
	f := cmd.Flags()
	f.StringVarP(&e.dir, "out", "o", "", "the crawl's `FOLDER` (needed without --crawl)")
	f.BoolVar(&e.json, "json", false, "answer in JSON")
	e.bindCommand(f)
	f.Lookup("crawl").Usage = "the `NAME` of a crawl of several nodes (default: that of the folder, if it is a node's)"
	f.SortFlags = false
	return cmd
}

func (e *explainer) run(stderr io.Writer, url string) (err error) {
	if places.IsURL(e.dir) {
		src, err := uploads.OpenSource(e.ctx, e.dir)
		if err != nil {
			return err
		}
		e.dir, e.remote = src.Dir, src
		return errors.Join(src.WithName(e.read(stderr, url)), src.Close())
	}
	return e.read(stderr, url)
}

func (e *explainer) read(stderr io.Writer, url string) (err error) {
	u, err := e.parse(url)
	if err != nil {
		return err
	}
	if e.dir == "" && e.crawl == "" {
		return usagef("which crawl? name its folder with --out, or a crawl of several nodes with --crawl")
	}
	x := &text.Explained{URL: u.String()}
	if e.dir != "" {
		if x.Explanation, err = e.explainFolder(u.String()); err != nil {
			return err
		}
		x.URL = x.Explanation.URL
		if was := u; err == nil { // as the crawl has it
			if u, err = seeds.ParseURL(x.URL); err != nil {
				u = was
			}
		}
	}
	if err := e.askOwner(stderr, x, u.Canonical()); err != nil {
		return err
	}
	if e.json {
		return text.JSON(e.w, x)
	}
	return text.Explain(e.w, x)
}

// parse reads the URL: a path is one of the host that all seeds of the folder's crawl are of, if there is one.
func (e *explainer) parse(typed string) (weburl.URL, error) {
	if e.dir == "" || !strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "//") {
		return seeds.ParseWritten(typed)
	}
	saved, err := folder.ReadSettings(e.dir)
	if err != nil {
		return weburl.URL{}, err
	}
	var origin weburl.URL
	given := settings.Map(saved)
	for _, seed := range given[setting.SeedsKey] {
		u, err := seeds.ParseURL(seed)
		if err != nil {
			return u, err
		}
		if origin != (weburl.URL{}) && (u.Scheme() != origin.Scheme() || u.Host() != origin.Host()) {
			return seeds.ParseWritten(typed)
		}
		origin = u
	}
	if _, more := given[setting.FilesKey]; more || origin == (weburl.URL{}) { // files may have many hosts
		return seeds.ParseWritten(typed)
	}
	return seeds.ParseURL(origin.Scheme() + "://" + origin.Host() + typed)
}

func (e *explainer) explainFolder(url string) (x *inspect.Explanation, err error) {
	if e.remote != nil {
		e.crawlView, err = wire.InspectFiles(e.dir, e.remote.Disk, func() (*job.Job, error) { return savedJob(e.ctx, e.dir) })
	} else {
		e.crawlView, err = openView(e.ctx, e.dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.crawlView.Close()) }()
	return e.crawlView.Explain(e.ctx, url)
}

// askOwner asks the cluster whose the host is, if the user names one, or the folder is a node's. Then that it cannot be
// asked is no error.
func (e *explainer) askOwner(stderr io.Writer, x *text.Explained, u weburl.URL) (err error) {
	named := e.crawl != "" || e.nats != "" || len(e.join) > 0
	if e.dir != "" {
		if e.self, err = nodes.IdentityOf(e.dir); err != nil {
			return err
		}
		if e.self == "" && named {
			return usagef("%s is the folder of a crawl of one node alone, which no cluster knows of", e.dir)
		}
		if e.self == "" {
			return nil
		}
		if err := e.findCrawl(); err != nil {
			return err
		}
	}
	x.ClusterQueried = true
	if !named {
		e.wait = min(e.wait, defaultNodeWait)
		if err := checkListening(defaultAddress); err != nil {
			x.ClusterErr = err
			return nil
		}
	}
	err = e.control(e.ctx, stderr, func(ctx context.Context, control admin.Client) error {
		r, err := control.Record(ctx)
		if err != nil {
			return err
		}
		slice := job.SlicesOf(settings.FromMap(r.Settings)).OfHost(u.Host(), u.String())
		if x.Owner, err = control.Owner(e.ctx, slice, e.self, e.wait); err != nil || x.Owner != nil {
			return err
		}
		return askLinks(ctx, x, control, u.String())
	})
	if err != nil && !named {
		x.ClusterErr = err
		return nil
	}
	return cluster.Advise(err)
}

func askLinks(ctx context.Context, x *text.Explained, control admin.Client, url string) (err error) {
	if x.Strategy, err = control.Strategy(ctx); err != nil {
		return err
	}
	l, err := control.Links(ctx, url)
	if err == nil && l != (inspect.Links{}) {
		x.Links = &l
	}
	return err
}

func (e *explainer) findCrawl() error {
	saved, err := folder.ReadSettings(e.dir)
	if names, has := settings.Map(saved)["name"]; has {
		name := strings.Join(names, ",")
		if e.crawl = cmp.Or(e.crawl, name); e.crawl != name {
			return usagef("%s belongs to the crawl %q, not to %q", e.dir, name, e.crawl)
		}
	}
	return err
}

// defaultNodeWait is how long is waited for a cluster that nobody has named.
const defaultNodeWait = 4 * time.Second

// checkListening returns an error if nobody listens at an address of this machine.
func checkListening(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return fmt.Errorf("no node with a server is at %s", address)
	}
	return c.Close()
}
