package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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

const explainLong = `Show the state of a URL in a crawl: whether it is known, and when and where it was found; the rule
and the line of robots.txt that apply; its place in the queue, and why its host waits; when it was
fetched, and where its record is; or why it was excluded.` +
	viewLong + `

CRAWL is the crawl's folder, as in --out, or a storage location with its uploaded files
(s3://bucket/prefix). There, only data in these files is available, without the crawl's state. Without
CRAWL, --out and --crawl, the folder is crawls/HOST, if it exists, where HOST is the URL's host.

For a crawl of several nodes it also shows the owner of the URL's host, since when, and, with strategy
hub, which nodes have failed to reach the host, and the time of the next attempt. Only the owner knows
the state of the URL: inspect its folder. With --crawl and without --out, only the owner is shown, from
any machine that reaches the cluster. For a host without an owner, it shows how many links to it wait,
and on how many nodes: with strategy balance, hosts wait until the master assigns them to the node that
is idle first.`

const explainExample = `  kumo explain https://example.com/a       # in crawls/example.com
  kumo explain https://example.com/a -o crawls/example.com
  kumo explain /a -o crawls/example.com    # a path, where all seeds are of one host
  kumo explain https://example.com/a -o crawls/news-b --join a.internal:7070 --secret-file cluster.secret
  kumo explain https://example.com/a --crawl news
  kumo explain s3://bucket/news https://example.com/a    # a crawl that lies in a place alone`

type explainer struct {
	viewCommand
	clusterFlags
	dir    string
	remote *uploads.Source // nil unless the crawl is in a storage location only
	self   string          // identity of the node that the folder belongs to
}

func explainCommand() *cobra.Command {
	e := &explainer{}
	cmd := &cobra.Command{Use: "explain [CRAWL] URL", Short: "Show why a URL was, or was not, crawled", Long: explainLong,
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
	f.StringVarP(&e.dir, "out", "o", "", "the crawl's `FOLDER` (default: crawls/HOST, with the URL's host, if it exists)")
	f.BoolVar(&e.json, "json", false, "print JSON")
	e.bindCommand(f)
	f.Lookup("crawl").Usage = "the `NAME` of a crawl of several nodes (default: from a node's folder)"
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
		e.dir = defaultFolderOf(u)
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
		if was := u; err == nil { // in the crawl's canonical form
			if u, err = seeds.ParseURL(x.URL); err != nil {
				u = was
			}
		}
	}
	if err := e.queryOwner(stderr, x, u.Canonical()); err != nil {
		return err
	}
	if e.json {
		return text.JSON(e.w, x)
	}
	return text.Explain(e.w, x)
}

// defaultFolderOf returns the default folder of a crawl with the URL's host as its first seed; "" if it does not exist.
func defaultFolderOf(u weburl.URL) string {
	dir := folder.DefaultDir(job.NameOf(u))
	if at, err := os.Stat(dir); err != nil || !at.IsDir() {
		return ""
	}
	return dir
}

// parse parses the URL. A path refers to the host of the seeds if all seeds of the folder's crawl have the same host.
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
	if _, more := given[setting.FilesKey]; more || origin == (weburl.URL{}) { // files may contain many hosts
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

// queryOwner asks the cluster which node owns the host, if the user names a cluster, or if the folder belongs to a
// node. In the latter case, an unreachable cluster is not an error.
func (e *explainer) queryOwner(stderr io.Writer, x *text.Explained, u weburl.URL) (err error) {
	named := e.crawl != "" || e.nats != "" || len(e.join) > 0
	if e.dir != "" {
		if e.self, err = nodes.IdentityOf(e.dir); err != nil {
			return err
		}
		if e.self == "" && named {
			return usagef("%s is the folder of a crawl without other nodes: give it without the cluster's flags", e.dir)
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
		return queryLinks(ctx, x, control, u.String())
	})
	if err != nil && !named {
		x.ClusterErr = err
		return nil
	}
	return cluster.Advise(err)
}

func queryLinks(ctx context.Context, x *text.Explained, control admin.Client, url string) (err error) {
	s, err := control.Strategy(ctx)
	if err != nil {
		return err
	}
	x.Strategy = s.Name
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

// defaultNodeWait is the timeout for a cluster that the user has not named.
const defaultNodeWait = 4 * time.Second

// checkListening returns an error if nothing listens at an address of this machine.
func checkListening(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return fmt.Errorf("no node with a server is at %s", address)
	}
	return c.Close()
}
