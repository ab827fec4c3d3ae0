package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"kumo/internal/app/folder"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire"
	"kumo/internal/app/wire/sinks"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/seeds"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
	"kumo/internal/state/stall"
	"kumo/internal/view/progress"
	"kumo/internal/view/telemetry"
	"kumo/internal/view/web"
)

const crawlLong = `Crawl from the given URLs and keep the result in a folder:

  warc/            requests and responses as WARC 1.1, with a CDXJ index beside each file
  index.cdxj       the merged index of all WARC files
  pages.jsonl      one line for each page: any URL that was answered, with any status
  text.jsonl       with --text: one line for each page that has a main text
  fields.jsonl     with --fields: one line for each extracted record
  crawl.log        one line for each visit, in Heritrix's twelve fields
  skipped.jsonl    one line for each URL in scope that was not fetched, with the rule
  report.json      totals of the crawl
  config.yaml      the settings in effect

Run the same command again to resume a crawl, even after Ctrl-C or a crash. It keeps its settings
unless you give others, and adds the seeds that you name. kumo snapshot copies a crawl, also while
it runs; kumo repair makes a crawl with damaged files usable again.

With --out s3://bucket/prefix (or hdfs://, file://) kumo uploads each WARC file when it is closed,
and the other files at the end of each run. The crawl's own folder stays on this machine (--work).
If the storage fails or is down, kumo retries while the crawl goes on (docs/how-to/crawl-to-storage.md).

On a terminal, kumo shows:

  pages    URLs answered (any status), and the rate; errors: URLs without an answer
  hosts    active: with a request in flight; waiting: for the delay or for a worker;
           backing off: after failures, or at the host's request
  turns    hosts that wait because another host at their IP address was just fetched (--ip-delay)
  URLs     waiting: in queues; known: found in scope, fetched or not
  place    files that wait for upload, and why
  ends     earliest end, set by the slowest host's delay, and whether the queue grows;
           STALLED: no answer for a minute although URLs wait, why, and what to do

--sink also sends each page's record to PostgreSQL, OpenSearch, Kafka or HBase (kumo export --help
lists the URLs). While the server is down, records wait in the crawl's files. With -o - kumo keeps
nothing and writes one line of JSON for each page to standard output; such a crawl cannot be
resumed, and ends when the reader closes the pipe.

With --recrawl the crawl continues after everything is fetched. It visits each page again when it
is due, asks servers only for changes, and adapts the interval to how often a page changes. With
--due it visits what is due now, and ends. A page that answers 404 or 410 five times in a row is
not visited again; the time between these visits doubles, up to the longest interval.`

const crawlExample = `  kumo crawl https://example.com/
  kumo crawl --contact https://me.example/bot -d 2 --limit 1000 https://example.com/docs/ --scope prefix
  kumo crawl -i seeds.txt --name news --concurrency 200 --out /data/news
  kumo crawl --recrawl 24h --recrawl '/news/=1h,10m,12h' --recrawl '/archive/=never' https://example.com/
  kumo crawl --due -o crawls/example.com
  kumo crawl --text --sink opensearch://localhost:9200/pages https://example.com/
  kumo crawl -q -o - https://example.com/ | jq -r .url
  kumo crawl -o s3://bucket/news --keep-local=false -i seeds.txt`

func crawlCommand() *cobra.Command {
	o := &options{allowPipe: true}
	cmd := &cobra.Command{
		Use: "crawl [flags] URL...", Short: "Crawl from the given URLs", Long: crawlLong, Example: crawlExample,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer func() { err = errors.Join(err, closeInput(&o.Job)) }()
			if err := crawlUI(o.UI).checkArgs(args); err != nil {
				return err
			}
			if err := o.resolve(cmd.Context(), cmd.Flags(), args); err != nil {
				return err
			}
			if o.DryRun {
				return o.explain(cmd.OutOrStdout())
			}
			if o.Out == sinks.Stdout {
				return o.pipe(cmd.Context())
			}
			o.Job.Change = o.changer(cmd.Flags())
			return o.crawl(cmd.Context(), cmd.OutOrStdout())
		},
	}
	o.bind(cmd.Flags())
	return withSettingsHelp(cmd)
}

// crawlFlags returns the flags of kumo crawl without the command.
func crawlFlags(o *options) *pflag.FlagSet {
	f := pflag.NewFlagSet("crawl", pflag.ContinueOnError)
	o.bind(f)
	return f
}

// crawl runs the job and shows its progress. kumo demo uses it, too.
func (o *options) crawl(ctx context.Context, out io.Writer) (err error) {
	show := o.newShow(os.Stderr)
	exporter, err := openTelemetry(ctx, o.Job.Name, "", show)
	if err != nil {
		return err
	}
	defer closeTelemetry(exporter, show)
	o.Job.Listener = exporter.Listener(crawl.Tee(o.Job.Listener, show.listener()))
	o.Job.Warn = func(err error) { show.log.Warn(err.Error()) }
	for _, w := range o.warnings {
		show.log.Warn(w)
	}
	if o.Job.Contact == "" && !strings.Contains(o.Job.Fetch.UserAgent, "://") &&
		!strings.Contains(o.Job.Fetch.UserAgent, "@") && !o.isLoopbackOnly() {
		show.log.Warn("no --contact is set: owners of the sites you crawl cannot reach you, and some will block you")
	}
	if o.Profile != "" {
		stop, profileErr := startProfile(o.Profile)
		if profileErr != nil {
			return profileErr
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	limitMemory(o.Job.MemoryLimit())
	metrics, err := listenMetrics(o.Metrics) // before anything else is started
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close()
	}
	up, err := o.openPlace(ctx, show)
	if err != nil {
		return err
	}
	if up != nil {
		defer func() { err = errors.Join(err, up.Close()) }()
	}
	asked, err := openFilters(ctx, &o.Filter, o.Job.Name, func(line string) { show.log.Warn(line) })
	if err != nil {
		return err
	}
	defer asked.close()
	asked.addTo(&o.Job)
	page, err := crawlUI(o.UI).listen()
	if err != nil {
		return err
	}
	defer page.close()
	following, err := o.follow(ctx, show, exporter)
	if err != nil {
		return err
	}
	c, err := wire.Open(ctx, &o.Job)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if c.Resumed {
		if c.Waiting == 0 && len(o.Job.Crawl.Recrawl.Intervals) == 0 {
			show.log.Info("no URL is pending in this crawl: it is done unless you give a new seed, or admit more URLs " +
				"(--depth, --max-pages-per-host, --embeds, --text, --fields); --fresh sets it aside and starts a new one")
		}
		show.log.Info("continuing", "folder", o.Job.Dir, "pages", c.Stats.Pages(), "urls_waiting", c.Waiting, "urls_known",
			c.Known)
		if len(o.inherited) > 0 {
			show.log.Info("settings of the earlier run still apply: give a flag again to change it", "settings",
				strings.Join(o.inherited, " "))
		}
	}
	if names := proxyVariables(o.Job.Fetch.Environment); names != "" {
		show.log.Info("URLs not named in NO_PROXY go through the proxies of the environment; --proxy "+noProxy+
			" disables that", "by", names)
	}
	report, sinksErr, err := o.run(ctx, c, show, runServices{up, metrics, page, following, exporter})
	if taken, all := c.Seeds(); taken < all {
		show.log.Info("not all seeds have been added: the same command adds the rest", "taken_in", taken, "seeds", all)
	}
	if report != nil && !o.Quiet && !o.noReport {
		report.Print(out)
		following.print(out)
		if o.Job.Dir != "" {
			fmt.Fprintf(out, "  %-9s %s\n", "folder", o.Job.Dir)
		}
		if up != nil {
			printUploads(out, up.Status())
		}
	}
	if report != nil && !o.Job.Crawl.NoTraps && report.Skipped[crawl.RuleTrap] > 0 {
		warnOfTraps(show.log, o.Job.Dir, report.Skipped[crawl.RuleTrap])
	}
	if isSinkBehind(sinksErr) && err != nil { // the crawl's own end decides the exit code; the message is printed anyway
		show.log.Warn(sinksErr.Error(), "do", advice.Of(sinksErr))
	} else if sinksErr != nil {
		err = errors.Join(err, sinksErr)
	}
	switch {
	case errors.Is(err, crawl.ErrNoProxy):
		return advice.With(err, "--proxy, or HTTP_PROXY and its like in the environment, name it; --proxy none does without")
	case err != nil:
		return err
	case report.Pages == 0:
		return errNothing
	case report.AbandonedMany():
		return fmt.Errorf("%d of %d hosts were %w", report.HostsAbandoned,
			report.HostsAnswered+report.HostsAbandoned-report.HostsFailed, errGaveUp)
	}
	return nil
}

func warnOfTraps(log *slog.Logger, dir string, urls int64) {
	how := []any{"let_in", "kumo crawl --no-traps"}
	if dir != "" {
		how = []any{"list", "kumo traps " + dir, "let_in", "kumo crawl --out " + dir + " --no-traps"}
	}
	log.Warn(stats.Count(urls, "URLs")+" excluded as endless traps", how...)
}

// listenMetrics listens on the address for metrics; it returns nil if there is none.
func listenMetrics(addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, usagef("--metrics is %q: give a host and a port, such as localhost:9090", addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("--metrics: %v", err)
	}
	return l, nil
}

// isLoopbackOnly reports whether all seeds are on this machine, such as a server under test, so that no contact address
// is needed.
func (o *options) isLoopbackOnly() bool {
	seeds, err := seeds.Parse(o.Job.Seeds)
	if err != nil || len(seeds) == 0 || o.Job.File != nil && !o.Job.File.Few() {
		return false
	}
	return !slices.ContainsFunc(seeds, func(u weburl.URL) bool {
		name := u.Hostname()
		addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
		return name != "localhost" && !strings.HasSuffix(name, ".localhost") && (err != nil || !addr.IsLoopback())
	})
}

type runServices struct {
	upload    *uploads.Upload
	metrics   net.Listener
	page      *uiPage
	followers *followerGroup
	exporter  *telemetry.Exporter
}

// run crawls, together with the progress display and the other services.
func (o *options) run(ctx context.Context, c *session.Session, show *console, others runServices) (report *stats.Report,
	sinks, err error) {
	if _, err := others.followers.Start(ctx); err != nil {
		return nil, nil, err
	}
	beside, done := context.WithCancel(context.WithoutCancel(ctx))
	g := errgroup.Group{}
	status := statusOf(c)
	g.Go(func() error {
		show.run(beside, func() progress.Status {
			s := status()
			s.Sinks = others.followers.Status()
			return s
		})
		return nil
	})
	g.Go(func() error { notifyService(ctx, beside, show.log, statusOf(c)); return nil })
	g.Go(func() error { tuneCollector(beside); return nil })
	src := metricsOf(func() *session.Session { return c })
	src.Name, src.Alive, src.Ready = o.Job.Name, c.CheckAlive, c.CheckReady
	if o.Job.Filters != nil {
		src.Filters = o.Job.Filters.Counts
	}
	if up := others.upload; up != nil {
		src.Uploads = up.Status
	}
	src.Sinks = o.Job.Sinks
	if err := others.exporter.ExportMetrics(ctx, web.Registry(src)); err != nil {
		done()
		return nil, nil, errors.Join(err, g.Wait())
	}
	if metrics := others.metrics; metrics != nil {
		show.metrics(metrics.Addr())
		g.Go(func() error { return web.Serve(beside, metrics, src) })
	}
	if page := others.page; page != nil {
		g.Go(func() error { return page.serve(beside, show.log, runningIn(o.Job.Dir)) })
	}
	if up := others.upload; up != nil {
		up.Start(beside)
	}
	report, err = c.Run(ctx)
	if session.IsStop(err) && ctx.Err() == nil { // kumo stop, or the web page, waits no longer than Ctrl-C
		stopped, end := context.WithCancel(ctx)
		end()
		ctx = stopped
	}
	sinks = others.followers.Finish(ctx)
	if o.Job.Sinks != nil && report != nil { // the report already has their state at the end of the run
		err = errors.Join(err, c.ReportSinks(report))
	}
	if up := others.upload; up != nil {
		err = withPlace(err, adviseUploads(up.Finish(ctx)))
	}
	done()
	if beside := g.Wait(); beside != nil {
		err = errors.Join(err, beside)
	}
	return report, sinks, err
}

func (s *console) metrics(at net.Addr) {
	if tcp, ok := at.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.log.Warn("everyone who reaches this address can read metrics and profiles without a password; "+
			"--metrics localhost:PORT restricts them to this machine", "at", "http://"+at.String()+"/metrics")
		return
	}
	s.log.Info("metrics", "at", "http://"+at.String()+"/metrics")
}

// A console shows a running crawl to the user.
type console struct {
	log     *slog.Logger
	live    *progress.Live // nil without a terminal, or if quiet
	quiet   bool
	verbose bool
	limits  progress.Limits
	uploads func() string // pending uploads as text; nil without a storage location
}

func (o *options) newShow(stderr *os.File) *console {
	limits := progress.Limits{Pages: o.Job.Crawl.Pages, Bytes: o.Job.Crawl.Bytes, Time: o.Job.Crawl.Time}
	if draws(stderr) && !o.Quiet && !o.LogJSON && !o.Verbose {
		live := progress.NewLive(stderr, func() int {
			width, _, err := term.GetSize(int(stderr.Fd()))
			if err != nil {
				return 80
			}
			return width
		}, o.Job.Name, limits)
		s := o.newLogShow(live)
		s.live = live
		return s
	}
	return o.newLogShow(stderr)
}

// newLogShow returns a console that writes a log to w.
func (o *options) newLogShow(w io.Writer) *console {
	limits := progress.Limits{Pages: o.Job.Crawl.Pages, Bytes: o.Job.Crawl.Bytes, Time: o.Job.Crawl.Time}
	s := &console{quiet: o.Quiet, verbose: o.Verbose, limits: limits}
	level := slog.LevelInfo
	switch {
	case o.Quiet:
		level = slog.LevelError
	case o.Verbose:
		level = slog.LevelDebug
	}
	opts := &slog.HandlerOptions{Level: level}
	if o.LogJSON {
		s.log = slog.New(slog.NewJSONHandler(w, opts))
	} else {
		s.log = slog.New(slog.NewTextHandler(w, opts))
	}
	return s
}

func statusOf(c *session.Session) func() progress.Status {
	return func() progress.Status {
		s := liveStatus(c)
		s.Seeds.Taken, s.Seeds.All = c.Seeds()
		if c.Job.Filters != nil {
			s.Filters = c.Job.Filters.Counts()
		}
		return s
	}
}

// liveStatus returns the status of a crawl, or of a node's part in a crawl.
func liveStatus(c *session.Session) progress.Status {
	outlook := c.Outlook()
	return progress.Status{Time: time.Now(), Totals: c.Stats.Totals(), Frontier: c.Frontier.Counts(), Known: c.URLsKnown(),
		Outage: c.Outage(), Forecast: outlook.Forecast, Stall: outlook.Stall, Uploads: uploadsOf(c)}
}

func uploadsOf(c *session.Session) (u stats.Uploads) {
	if a := c.Job.Upload; a != nil {
		u = a.Status()
	}
	return u
}

// currentOr returns a function that queries the current session, or returns the zero value if there is none. A node
// gets a new session after it has lost its place in the crawl.
func currentOr[T any](now func() *session.Session, ask func(*session.Session) T) func() T {
	return func() (v T) {
		if c := now(); c != nil {
			v = ask(c)
		}
		return v
	}
}

// metricsOf returns the source of the metrics of the current session.
func metricsOf(now func() *session.Session) web.Source {
	return web.Source{
		Outage:   currentOr(now, (*session.Session).Outage),
		Known:    currentOr(now, (*session.Session).URLsKnown),
		Totals:   currentOr(now, func(c *session.Session) stats.Snapshot { return c.Stats.Totals() }),
		Frontier: currentOr(now, func(c *session.Session) frontier.Counts { return c.Frontier.Counts() }),
		Forecast: currentOr(now, func(c *session.Session) forecast.Forecast { return c.Outlook().Forecast }),
		Disk: func() (free, least uint64) {
			if c := now(); c != nil {
				v := c.Engine.Vitals()
				free, least = v.DiskFree, v.DiskMin
			}
			return free, least
		},
		Stall: currentOr(now, func(c *session.Session) stall.Alarm { return c.Outlook().Stall }),
		Answers: func() (statuses map[int]int64, failures map[string]int64) {
			if c := now(); c != nil {
				statuses, failures = c.Stats.Answers()
			}
			return statuses, failures
		},
	}
}

// run shows the progress of a crawl until ctx ends.
func (s *console) run(ctx context.Context, status func() progress.Status) {
	if s.live != nil {
		s.live.Run(ctx, status)
		return
	}
	progress.Log(ctx, s.log, s.limits, status)
}

func (s *console) listener() crawl.Listener {
	if s.live != nil {
		return dedupIdle(s.live.Listener())
	}
	return dedupIdle(s.logging())
}

// dedupIdle wraps a listener so that it gets one Idle event until the next visit.
func dedupIdle(l crawl.Listener) crawl.Listener {
	var told atomic.Bool
	visited, idle := l.Visited, l.Idle
	l.Visited = func(r *page.Record) {
		told.Store(false)
		if visited != nil {
			visited(r)
		}
	}
	l.Idle = func(next time.Time) {
		if !told.Swap(true) {
			idle(next)
		}
	}
	return l
}

// logging returns a listener that logs events: those of hosts always, those of URLs if verbose.
func (s *console) logging() crawl.Listener {
	l := crawl.Listener{
		Paused: func(free uint64) {
			// Logged as an error so that --quiet does not hide it: the crawl waits until the user acts.
			args := []any{"free", stats.Bytes(int64(free))}
			if s.uploads != nil {
				args = append(args, "place", s.uploads())
			}
			s.log.Error("paused: the disk is nearly full; make room, or continue with a lower --min-free-disk", args...)
		},
		Resumed: func(free uint64) { s.log.Info("the disk has room again", "free", stats.Bytes(int64(free))) },
		Slowed: func(host string, status int, ask, wait time.Duration) {
			level, text := slog.LevelDebug, "host asks to be left alone" // a single 503 is not worth a message
			switch {
			case ask > wait:
				level, text = slog.LevelWarn, "host asks for a longer back-off than --max-backoff allows"
			case status == http.StatusTooManyRequests || ask > 0:
				level = slog.LevelInfo
			}
			s.log.Log(context.Background(), level, text, "host", host, "status", status, "retry_after", ask.String(), "waits",
				wait.String())
		},
		Offline: func(since time.Time, why string) {
			s.log.Error("offline: none of the hosts that worked can be reached; the crawl waits, tries a few of "+
				"them now and then, and resumes by itself",
				"since", since.UTC().Format(time.RFC3339), "why", why)
		},
		Online: func(after time.Duration, reached bool) {
			if reached {
				s.log.Warn("online again: the crawl resumes", "cut_off_for", after.Round(time.Second).String())
				return
			}
			s.log.Warn("the few hosts that worked are still unreachable: the crawl no longer waits for them", "waited",
				after.Round(time.Second).String())
		},
		NoSockets: func(why string) {
			s.log.Error("this machine has no file descriptor, port or buffer left for connections: they are delayed; see "+
				"ulimit -n, or lower --concurrency",
				"why", why)
		},
		Unranked: func(why error) {
			s.log.Warn("no memory to rank more URLs: URLs found from now on have importance 1; see --memory",
				"why", why.Error())
		},
		// Logged as an error so that --quiet does not hide it: most stalls last until the user acts.
		Stalled: func(after time.Duration, why, do string) {
			s.log.Error("stalled: "+why, "nothing_answered_for", after.Round(time.Second).String(), "do", do)
		},
		Recovered: func(after time.Duration) {
			s.log.Warn("no longer stalled: the crawl continues", "stalled_for", after.Round(time.Second).String())
		},
		RenderFailed: func(url string, why error) {
			s.log.Warn("not rendered: the page is used as it was received", "url", url, "why", why.Error())
		},
		ActionFailed: func(url string, why error) {
			s.log.Warn("not all actions were done on a rendered page", "url", url, "why", why.Error())
		},
		ShotFailed: func(url string, why error) {
			s.log.Warn("no picture of a rendered page", "url", url, "why", why.Error())
		},
		DocumentFailed: func(url string, why error) {
			s.log.Warn("a document was not read", "url", url, "why", why.Error())
		},
		RenderingStopped: func(host, why string) {
			s.log.Info("no more pages of a kind are rendered at a host", "host", host, "why", why)
		},
		Abandoned: func(host, why string) { s.log.Warn("host abandoned", "host", host, "why", why) },
		Idle: func(next time.Time) {
			s.log.Info("no URL is pending; Ctrl-C stops the crawl", "next_recrawl", next.UTC().Format(time.RFC3339))
		},
	}
	if s.verbose {
		l.Visited = s.logVisit
		l.Retried = func(r *page.Record, ask time.Duration) {
			s.log.Debug("again later", "url", r.URL, "tries", r.Tries, "error", r.Detail, "retry_after", ask.String())
		}
		l.Skipped = func(k *page.Skip) { s.log.Debug("excluded", "url", k.URL, "rule", k.Rule, "why", k.Why) }
	}
	return l
}

func (s *console) logVisit(r *page.Record) {
	if r.Failure != page.None {
		s.log.Debug("failed", "url", r.URL, "failure", string(r.Failure), "error", r.Detail)
		return
	}
	args := []any{"url", r.URL, "status", r.Response.Status, "bytes", r.Response.RawLen(), "took",
		r.Took.Round(time.Millisecond).String()}
	if r.Page != nil {
		args = append(args, "type", r.Page.Type, "links", len(r.Page.Links))
	}
	if r.Recrawl != page.First {
		args = append(args, "recrawl", string(r.Recrawl))
	}
	s.log.Debug("page", args...)
}

func (o *options) explain(w io.Writer) error {
	if err := wire.Check(&o.Job); err != nil {
		return err
	}
	seeds, err := o.Job.Normalize()
	if err != nil {
		return err
	}
	what := "A new crawl"
	if saved, err := folder.ReadSettings(o.Job.Dir); err == nil && saved != nil && !o.Job.Fresh {
		what = "This would resume the crawl"
	} else if !o.Job.HasSeeds() {
		return o.Job.NoSeedsError()
	}
	o.warn(w)
	fmt.Fprintf(w, "%s, %q, in %s, as\n  %s\n", what, o.Job.Name, o.Job.Dir, o.Job.UserAgent())
	fmt.Fprintln(w, "from")
	for i, u := range seeds {
		if i == 20 {
			fmt.Fprintf(w, "  and %d more\n", len(seeds)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", u)
	}
	if f := o.Job.File; f != nil && !f.Few() {
		fmt.Fprintf(w, "  %d URLs of %s\n", f.Count, f.Title())
	}
	fmt.Fprintln(w, "with these settings:")
	for _, s := range o.Job.Settings {
		if s.Key != setting.SeedsKey {
			fmt.Fprintf(w, "  %s: %s\n", s.Key, strings.Join(s.Values, ", "))
		}
	}
	_, err = fmt.Fprintln(w, "Nothing was fetched or written.")
	return err
}
