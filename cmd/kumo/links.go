package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/app/job"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/links"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/view/text"
)

const linksCommandLong = `Say which pages of the crawl in FOLDER link to what.

  --broken     links that lead to an error, to nothing, or round in circles, by the URL that they lead to: each with its
               status, where it is redirected to, the pages that have it, and its words
  --to URL     links that lead to URL, by redirects, too
  --from URL   links of a page, in their order, each with what became of it

It reads the crawl's files, whether it runs or not: crawl.log, pages.jsonl and the WARC files, of which answers are skipped;
the words of a link are those of the page's record. Where the WARC files have been moved away, only the page is known that
named each URL first.

FOLDER may be a place to which kumo crawl has brought its files (s3://bucket/prefix): they are read there.

With --check-external it first asks for what pages link to on hosts that the crawl has not visited: by HEAD, and where that
is an error by GET, as the crawl is set (user agent, proxy, --delay, robots.txt), one host at a time each, 16 hosts at once.
What came of it is kept in external.jsonl in the crawl's folder, which later calls use, too; what was checked in the last
seven days is not asked for again, so a check that was ended goes on when it is called once more.

As lines of JSON (--jsonl) and in columns (--csv) there are url, status (0: no answer), error (why: dns, timeout, loop, ...; of
what was not fetched the rule that left it out), redirects (the last is the end), from, kind (a, img, redirect, ...), text.`

type linksOptions struct {
	to, from           string
	broken, csv, jsonl bool
	external, quiet    bool
	most               int
	temp               string
	found              int64
}

func linksCommand() *cobra.Command {
	o := &linksOptions{}
	cmd := &cobra.Command{Use: "links --broken|--to URL|--from URL FOLDER",
		Short: "Say which pages link to what, and what is broken",
		Long:  linksCommandLong,
		Example: "  kumo links --broken crawls/example.com\n  kumo links --to https://example.com/gone crawls/example.com\n" +
			"  kumo links --broken --check-external --csv crawls/example.com > broken.csv",
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) }}
	f := cmd.Flags()
	f.BoolVar(&o.broken, "broken", false, "links that lead to an error, to nothing or round in circles")
	f.StringVar(&o.to, "to", "", "links that lead to `URL`")
	f.StringVar(&o.from, "from", "", "links of the page `URL`")
	f.BoolVar(&o.csv, "csv", false, "answer in columns, as spreadsheets read them")
	f.BoolVar(&o.jsonl, "jsonl", false, "answer in JSON, a line for each link")
	f.BoolVar(&o.external, "check-external", false,
		"ask hosts that the crawl has not visited for what pages link to there")
	f.VarP(newLimitFlag(&o.most, 10_000), "external-limit", "", "check so many URLs in one go; the rest waits for the next")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not say how far it is")
	f.StringVar(&o.temp, "temp", "", "sort in this `FOLDER` (default: the system's for temporary files)")
	return orOut(cmd)
}

func (o *linksOptions) run(cmd *cobra.Command, dir string) (err error) {
	asked := 0
	for _, is := range []bool{o.broken, o.to != "", o.from != ""} {
		if is {
			asked++
		}
	}
	switch {
	case asked != 1:
		return usagef("say what to look for: one of --broken, --to URL and --from URL")
	case o.csv && o.jsonl:
		return usagef("--csv and --jsonl: choose one")
	}
	for _, url := range []*string{&o.to, &o.from} {
		if *url != "" {
			if *url, err = urlArg(*url); err != nil {
				return err
			}
		}
	}
	src, err := uploads.OpenSource(cmd.Context(), dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(src.WithName(err), src.Close()) }()
	if src.Remote && o.external {
		return usagef("--check-external keeps what it finds in the crawl's folder, which a place is not: name that folder")
	}
	dir = src.Dir
	if _, err := savedIn(dir); err != nil {
		return err
	}
	of, err := savedOptions(cmd.Context(), dir)
	if err != nil {
		return err
	}
	cfg := links.Config{Dir: dir, Disk: src.Disk, Temp: o.temp, Canon: of.Job.Crawl.Canon}
	line := delayedLine(os.Stderr, !o.quiet)
	if line.w != nil {
		cfg.Progress = func(p links.Progress) {
			if p.Step == "other sites" {
				line.show("%s: %d of %d URLs", p.Step, p.Done, p.Total)
			} else {
				line.show("%s: %d of %d MB", p.Step, p.Done>>20, p.Total>>20)
			}
		}
	}
	f, err := links.Open(cmd.Context(), cfg)
	if err != nil {
		line.clear()
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if o.external {
		if err = checkProxies(of.Proxies); err == nil {
			err = o.check(cmd, f, &of.Job)
		}
	}
	if err == nil {
		err = o.answer(cmd, f, line.clear)
	}
	line.clear()
	for _, note := range f.Notes() {
		fmt.Fprintln(cmd.ErrOrStderr(), "kumo:", note)
	}
	return err
}

// urlArg is a URL as the crawl has it.
func urlArg(arg string) (string, error) {
	raw := arg
	if !strings.Contains(raw, "://") {
		raw = "https://" + raw
	}
	u, err := weburl.Parse(raw)
	if err != nil || !u.IsHTTP() {
		return "", usagef("%q is no URL of a page", arg)
	}
	return u.Canonical().String(), nil
}

func (o *linksOptions) check(cmd *cobra.Command, f *links.Finder, j *job.Job) error {
	done, err := f.CheckExternal(cmd.Context(), links.Checker{Fetch: j.FetchConfig(), Agent: job.Agent,
		Robots: !j.Crawl.IgnoreRobots, Delay: j.Frontier.Delay, MaxDelay: j.Frontier.MaxDelay, MaxURLs: o.most, Concurrency: 16})
	if !o.quiet && err == nil {
		left := ""
		if done.Remaining > 0 {
			left = fmt.Sprintf("; %s more for the next time", stats.Grouped(done.Remaining))
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "kumo: %s of other sites checked%s\n", stats.Count(done.Checked, "URLs"), left)
	}
	return err
}

func (o *linksOptions) answer(cmd *cobra.Command, f *links.Finder, clear func()) error {
	out := text.NewLinkPrinter(cmd.OutOrStdout(), o.format())
	tell := func(l *links.Link) error {
		clear()
		o.found++
		return out.Print(l)
	}
	var err error
	switch ctx := cmd.Context(); {
	case o.broken:
		err = f.Broken(ctx, tell)
	case o.to != "":
		err = f.To(ctx, o.to, tell)
	default:
		err = f.From(ctx, o.from, tell)
	}
	clear()
	if err = errors.Join(err, out.End()); err != nil || o.found > 0 {
		return err
	}
	switch w := cmd.ErrOrStderr(); {
	case o.broken:
		fmt.Fprintln(w, "kumo: no link is broken")
	case o.to != "":
		fmt.Fprintf(w, "kumo: no page links to %s\n", o.to)
	default:
		fmt.Fprintf(w, "kumo: no page %s with links is in the crawl's records\n", o.from)
	}
	return nil
}

func (o *linksOptions) format() text.LinkFormat {
	switch {
	case o.jsonl:
		return text.LinksJSON
	case o.csv:
		return text.LinksCSV
	case o.from != "":
		return text.LinkLines
	}
	return text.LinksByURL
}
