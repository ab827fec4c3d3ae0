package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	wirebatch "kumo/internal/app/wire/batch"
	"kumo/internal/app/wire/places"
	"kumo/internal/base/page"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/view/progress"
	"kumo/internal/view/text/batches"
)

const batchRunLong = `Crawl the collections in CONFIG for one day. CONFIG is YAML files, or folders of them.

Each round crawls one layer. Job crawl fetches its URLs, parse extracts their links, and optimize
selects the new ones for the next round. When there are none, merge combines all data about each
URL into one document, and xml writes the text of the pages. Collections that are run together
share the jobs; a URL in two of them is fetched once.

A day is run once: the same command then only does what is missing. After Ctrl-C or a crash, the
same command resumes with the unfinished job. On the next day, known URLs are visited again when
they are due, with conditional requests.

Keys of a collection's file, with their defaults:

  code: de                 name: lower case letters, digits, hyphens
  name: Deutsch            title
  directory: crawler_de    its folder in --place
  seeds: [URL, …]          start of each day
  scope: domain            URLs in scope, relative to the seeds: host, domain, prefix, page, any
  include: [REGEX, …]      URLs, except seeds, must match one of these
  exclude: [REGEX, …]      URLs must match none of these
  depth: 8                 links from a seed
  threads: 30              concurrent fetches of each reducer
  interval: 1s             between two pages of a site; longer if its robots.txt requires it
  redirects: 20            maximum in a row
  charsets: [gbk, …]       expected charsets of its pages
  language:
    code: de               pages in other languages are stored separately; any: they are not;
                           default: the collection's code
    share: 0.5             minimum share of a page's text in the language
    confidence: 0.5        minimum confidence of the detection
  recrawl: 24h,20h,30d     interval between visits: initial, minimum, maximum; or never;
                           REGEX=… for URLs that match
  fields: RULES.yaml       extract records by these rules, a file in the same folder; see
                           docs/reference/field-rules.md
  schedule: "00:30"        for kumo batch schedule; see its help

Files in --place, where DIR is the collection's directory:

  DIR/doc/DATE/            documents: requests, responses and extracted text, as SequenceFiles
  DIR/xml/DATE/            pages in the collection's language as XML: URL, time, directory,
                           encoding, language, headline, text; counts.json
  DIR/other/DATE/          pages in other languages
  DIR/fields/DATE/         extracted records, JSON Lines; report.json: found and missing fields,
                           by rule and host
  DIR/in, out, known/      URLs of each round; their links; known URLs for the next day
  DIR/state/DATE.json      state of the day, and results of each job
  robots/, work/           today's robots.txt files; running jobs

The table at the end shows the results of the day: pages in the collection's language, new or
changed; pages in other languages; URLs with unchanged pages, which are stored in an earlier day;
the size of the pages as sent; rounds; the idle share.

The idle share is the time that a job's threads waited because politeness allowed no request. With
few hosts it is always high; more collections per run, or more hosts, reduce it.

The target of a redirect from a seed is in scope, too, on that day and later ones.

If no page of a collection could be fetched, because the network was down or the rules of all seeds
forbid it, the reasons are printed. Such a day is not done: the same command starts it again, and
earlier data is kept.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 nothing could be fetched for a
collection, 5 the disk is full, 130 interrupted; the same command resumes.`

const batchRunExample = `  kumo batch run --contact https://me.example/bot collections/
  kumo batch run --place /data/news --only zh,ja collections/
  kumo batch run --date 2026-11-21 --depth 2 de.yaml`

type batchOptions struct {
	on, place, temp string
	only            []string
	depth           int
	date            string
	reducers        int
	memory          int64
	quiet           bool
	contact         string
	userAgent       string
	profile         string
	fields          string // file of rules for collections without fields
	fetching        batch.Fetching
}

func batchRunCommand() *cobra.Command {
	o := &batchOptions{}
	cmd := &cobra.Command{
		Use:     "run [flags] CONFIG...",
		Short:   "Crawl collections for one day",
		Long:    batchRunLong,
		Example: batchRunExample,
		Args:    someCollections,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().StringVar(&o.date, "date", "", "run this `DAY`, such as 2026-11-21 (default: today, UTC)")
	o.bind(cmd)
	cmd.Flags().StringVar(&o.profile, "profile", "",
		"write profiles of CPU, memory, blocking and locks to `DIR`, for go tool pprof")
	return cmd
}

func (o *batchOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.on, "on", "local", "run jobs on `WHAT`: "+strings.Join(wirebatch.Runners(), ", "))
	f.StringVar(&o.place, "place", "batch", "store everything at this `URL` or in this folder")
	f.StringSliceVar(&o.only, "only", nil, "run only the collections with these `CODES`, separated by commas")
	f.IntVarP(&o.depth, "depth", "d", -1, "follow links up to `HOPS` from a seed (default: each collection's depth)")
	f.Lookup("depth").DefValue = "0" // keeps the default out of the help
	f.StringVar(&o.fields, "fields", "", "extract records by the rules in `FILE`, for collections that name "+
		"none; see docs/reference/field-rules.md")
	f.IntVar(&o.reducers, "reducers", wirebatch.Reducers(), "split each job into `N` partitions")
	f.StringVar(&o.contact, "contact", "", "a `URL` or mail address where site owners can reach you; part of the "+
		"user agent")
	f.StringVar(&o.userAgent, "user-agent", "", "send this User-Agent (default: kumo's)")
	durationVar(f, &o.fetching.Timeout, "timeout", 30*time.Second,
		"maximum wait for response headers, and between two reads of a body")
	f.Var(setting.Size(&o.fetching.MaxBody), "max-body", "truncate longer bodies, and mark them (0: 32MB)")
	f.IntVar(&o.fetching.Tries, "tries", 3, "try a URL `N` times before it fails")
	durationVar(f, &o.fetching.MaxWait, "max-backoff", 5*time.Minute,
		"maximum back-off for a host that fails or sends Retry-After")
	durationVar(f, &o.fetching.AddressDelay, "ip-delay", 250*time.Millisecond,
		"wait this long between requests to an address that several hosts share")
	(*documentsFlag)(&o.fetching.Documents).bind(f)
	f.BoolVar(&o.fetching.AllowPrivate, "allow-private", false,
		"fetch from private addresses, too; seeds may always name them")
	bindTLS(f, &o.fetching.InsecureTLS, &o.fetching.PostQuantumTLS, &o.fetching.LegacyTLS)
	f.StringArrayVar(&o.fetching.Resolve, "resolve", nil,
		"connect to ADDR for HOST:PORT, as `HOST:PORT:ADDR` (repeatable)")
	f.StringVar(&o.fetching.DNSServer, "dns-server", "", "ask this name server (`HOST:PORT`) instead of the system's")
	f.Var(setting.Size(&o.memory), "memory", "memory for sorting (0: 192MB); the rest is sorted in --temp")
	f.StringVar(&o.temp, "temp", "", "a `FOLDER` for data between map and reduce (default: in --place)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only errors")
	f.SortFlags = false
}

func (o *batchOptions) load(args []string) ([]*collection.Collection, error) {
	all, err := loadCollections(o.fields, args)
	if err != nil {
		return nil, err
	}
	if len(o.only) > 0 {
		var kept []*collection.Collection
		for _, code := range o.only {
			i := slices.IndexFunc(all, func(c *collection.Collection) bool { return c.Code == strings.TrimSpace(code) })
			if i < 0 {
				return nil, usagef("--only %s: there is no such collection; there are %s", code, collection.Codes(all))
			}
			if !slices.Contains(kept, all[i]) {
				kept = append(kept, all[i])
			}
		}
		all = kept
	}
	if o.depth >= 0 {
		for _, c := range all {
			c.Depth = o.depth
		}
	}
	return all, nil
}

// loadCollections loads collections. Those without rules get the rules in the given file.
func loadCollections(rules string, args []string) ([]*collection.Collection, error) {
	all, err := collection.LoadAll(args...)
	if err != nil {
		return nil, err
	}
	var faults error
	for _, c := range all {
		if c.Fields == "" && rules != "" {
			c.Fields = rules
			if err := c.ReadFieldRules(); err != nil {
				return nil, usagef("--fields: %w", err)
			}
		}
		if err := batch.CheckFields(c); err != nil {
			faults = errors.Join(faults, fmt.Errorf("collection %s: %w", c.Code, err))
		}
	}
	if faults != nil {
		return nil, usagef("%w", faults)
	}
	return all, nil
}

func (o *batchOptions) check(cmd *cobra.Command) error {
	if o.date == "" {
		o.date = time.Now().UTC().Format(time.DateOnly)
	}
	if err := batch.CheckDate(o.date); err != nil {
		return usagef("--date: %w", err)
	}
	switch {
	case cmd.Flags().Changed("depth") && o.depth < 0:
		return usagef("--depth %d: a number from 0 on is wanted", o.depth)
	case o.reducers < 1 || o.reducers > maxReducers:
		return usagef("--reducers %d: a number from 1 to %d is wanted", o.reducers, maxReducers)
	case o.fetching.Tries < 1:
		return usagef("--tries %d: at least 1 is wanted", o.fetching.Tries)
	}
	return nil
}

const maxReducers = 10_000

func (o *batchOptions) run(cmd *cobra.Command, args []string) (err error) {
	if err := o.check(cmd); err != nil {
		return err
	}
	all, err := o.load(args)
	if err != nil {
		return err
	}
	if o.profile != "" {
		stop, profileErr := startProfile(o.profile)
		if profileErr != nil {
			return profileErr
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	p, show, err := o.open(cmd.Context())
	if err != nil {
		return err
	}
	p.Collections, p.Date = all, o.date
	err = p.Run(cmd.Context())
	show.End()
	if err != nil && !errors.Is(err, batch.ErrNothingFetched) {
		return err
	}
	out := cmd.OutOrStdout()
	if o.quiet {
		out = io.Discard
	}
	if told := batches.Run(cmd.Context(), out, p.Place, o.place, o.date, all); err == nil {
		err = told
	}
	return err
}

// open opens the pipeline, without collections and day, and the progress display.
func (o *batchOptions) open(ctx context.Context) (*batch.Pipeline, *progress.Batch, error) {
	at, err := places.Open(ctx, o.place)
	if err != nil {
		return nil, nil, err
	}
	runner, err := wirebatch.OpenRunner(wirebatch.Setup{On: o.on, Place: at, Temp: o.temp, Memory: o.memory})
	if err != nil {
		return nil, nil, err
	}
	fetching := wirebatch.Fetching(o.contact)
	o.fetching.Agent = fetching.Agent
	if o.fetching.UserAgent = o.userAgent; o.userAgent == "" {
		o.fetching.UserAgent = fetching.UserAgent
	}
	limitMemory(wirebatch.MemoryLimit(o.memory))
	show := progress.NewBatch(os.Stderr, draws(os.Stderr), o.quiet)
	if o.contact == "" && o.userAgent == "" && !o.fetching.AllowPrivate {
		show.Log.Warn("no --contact is set: owners of the sites you crawl cannot reach you, and some will block you")
	}
	return &batch.Pipeline{Deps: batch.Deps{Place: at, Text: pageTexts(),
		Documents: sharedDocuments()}, Runner: runner, Reducers: o.reducers,
		Fetching: o.fetching, Listener: show.Listener()}, show, nil
}

// pageTexts returns a function that extracts main texts, with at most one concurrent extraction per processor.
func pageTexts() func(*page.Response, *page.Page) (*page.MainText, error) {
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	return func(resp *page.Response, pg *page.Page) (*page.MainText, error) {
		places <- struct{}{}
		defer func() { <-places }()
		body := resp.Body[:min(len(resp.Body), textBodyCeiling)]
		t, err := maintext.Extract(parse.UTF8(body, pg.Charset), resp.URL)
		if t.Text == "" {
			return nil, err
		}
		return &page.MainText{Title: t.Title, Headline: t.Headline, Text: t.Text, Lang: t.Language()}, err
	}
}
