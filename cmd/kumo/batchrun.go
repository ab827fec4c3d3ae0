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

const batchRunLong = `Crawl the day of the collections in CONFIG: YAML files, or folders of them.

A round crawls one layer: crawl fetches its URLs, parse finds their links, optimize finds which of them are new; these
are the next round. When none are, merge makes one document of each URL and notes what is known of it, and xml writes
what the pages say. Collections that are run together share the jobs; a URL of two is fetched once.

A day is run once: the same command does nothing more, but for what is not done. It may be ended at any time, by
Ctrl-C or a crash: given again, it goes on at the job that was not done. On the next day, what is known is asked for
again when it is due, and servers say only what has changed.

Keys of a collection's file, with their defaults:

  code: de                 names it: lower case letters, digits, hyphens
  name: Deutsch            for people
  directory: crawler_de    its folder in the place
  seeds: [URL, …]          where it begins, each day
  scope: domain            how far it goes from there: host, domain, prefix (folder of a seed), page, any
  include: [REGEX, …]      a URL must match one, if there are any; seeds need not
  exclude: [REGEX, …]      and none of these
  depth: 8                 hops from a seed
  threads: 30              that fetch at once, for each reducer
  interval: 1s             between two pages of a site; longer where its robots.txt asks for it
  redirects: 20            in a row
  charsets: [gbk, …]       that its pages are expected in
  language:
    code: de               pages in others are kept apart; any: they are not; default: the collection's code
    share: 0.5             of a page's text that must be in it
    confidence: 0.5        of telling so
  recrawl: 24h,20h,30d     when pages are visited again: at first, least, most; never; REGEX=… for those that match
  fields: RULES.yaml       makes records of its pages by these rules, a file beside this one; see docs/reference/field-rules.md
  schedule: "00:30"        when kumo batch schedule runs it; see there

What lies in the place, DIR being the collection's directory:

  DIR/doc/DATE/            documents: requests, answers and what they say, as Hadoop SequenceFiles
  DIR/xml/DATE/            pages in the collection's language as XML: URL, time, directory, encoding, language, headline,
                           text; counts.json
  DIR/other/DATE/          pages in other languages
  DIR/fields/DATE/         records by the rules of fields, JSON Lines; report.json: what was found and missed, by rule and host
  DIR/in, out, known/      URLs of each round; their links; what is known for the next day
  DIR/state/DATE.json      how far the day is, and what each job came to
  robots/, work/           what robots.txt files answered today; jobs under way

The table at the end says what the day came to: pages in the collection's language, new or changed; apart, those in
other languages; URLs whose pages are unchanged, which lie with the day that had them last; the bytes of the pages as
they were sent; rounds; the idle share.

Idle share is how much of its time a job's threads have waited because politeness let them ask no host: with few hosts
it is high whatever is done; more collections together, or more hosts, use the time.

Where a seed redirects to is in scope, too, on that day and the days after it.

A collection of which not one page could be fetched, as the line was down or the rules of all seeds forbid it, is told
with the reasons. Such a day is not done: the same command begins it again, and what was known before stays known.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 nothing could be fetched of a collection, 5 the disk is
full, 130 interrupted; the same command goes on.`

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
	fields          string // a file of rules for collections without
	fetching        batch.Fetching
}

func batchRunCommand() *cobra.Command {
	o := &batchOptions{}
	cmd := &cobra.Command{
		Use:     "run [flags] CONFIG...",
		Short:   "Crawl the day of collections",
		Long:    batchRunLong,
		Example: batchRunExample,
		Args:    someCollections,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().StringVar(&o.date, "date", "", "run this `DAY`, 2026-11-21 (default: today, UTC)")
	o.bind(cmd)
	cmd.Flags().StringVar(&o.profile, "profile", "",
		"write profiles of CPU, memory, blocking and locks to `DIR`, for go tool pprof")
	return cmd
}

func (o *batchOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.on, "on", "local", "run jobs on `WHAT`: "+strings.Join(wirebatch.Runners(), ", "))
	f.StringVar(&o.place, "place", "batch", "keep everything in the place at this `URL`, or folder")
	f.StringSliceVar(&o.only, "only", nil, "run only the collections with these `CODES`, separated by commas")
	f.IntVarP(&o.depth, "depth", "d", -1, "follow links this many `HOPS` from a seed (default: what the collections say)")
	f.Lookup("depth").DefValue = "0" // which is not told
	f.StringVar(&o.fields, "fields", "", "make records of pages by the rules in `FILE`, for collections whose files name "+
		"none; see docs/reference/field-rules.md")
	f.IntVar(&o.reducers, "reducers", wirebatch.Reducers(), "spread each job over `N` partitions")
	f.StringVar(&o.contact, "contact", "", "a `URL` or mail address where site owners can reach you; part of the "+
		"user agent")
	f.StringVar(&o.userAgent, "user-agent", "", "send this User-Agent (default: kumo's)")
	durationVar(f, &o.fetching.Timeout, "timeout", 30*time.Second,
		"wait so long for an answer's head, and between two reads of its body")
	f.Var(setting.Size(&o.fetching.MaxBody), "max-body", "cut bodies off after so many bytes, and mark them (0: 32MB)")
	f.IntVar(&o.fetching.Tries, "tries", 3, "ask for a URL that fails `N` times")
	durationVar(f, &o.fetching.MaxWait, "max-backoff", 5*time.Minute,
		"leave a host that fails, or asks for it (Retry-After), alone for this long at most")
	durationVar(f, &o.fetching.AddressDelay, "ip-delay", 250*time.Millisecond,
		"wait this long between requests to an address that several hosts share")
	f.BoolVar(&o.fetching.AllowPrivate, "allow-private", false,
		"fetch from private addresses, too; seeds that name one may anyway")
	bindTLS(f, &o.fetching.InsecureTLS, &o.fetching.PostQuantumTLS, &o.fetching.LegacyTLS)
	f.StringArrayVar(&o.fetching.Resolve, "resolve", nil,
		"connect to ADDR for HOST:PORT, as `HOST:PORT:ADDR` (repeatable)")
	f.StringVar(&o.fetching.DNSServer, "dns-server", "", "ask this name server (`HOST:PORT`) instead of the system's")
	f.Var(setting.Size(&o.memory), "memory", "sort in so much memory (0: 192MB); what does not fit goes to --temp")
	f.StringVar(&o.temp, "temp", "", "a `FOLDER` for what lies between map and reduce (default: in the place)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing but errors")
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

// loadCollections loads collections, with the rules in a file for those that have none.
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

// open opens what a pipeline needs but its collections and its day, and what shows a person what it does.
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
	return &batch.Pipeline{Deps: batch.Deps{Place: at, Text: pageTexts()}, Runner: runner, Reducers: o.reducers,
		Fetching: o.fetching, Listener: show.Listener()}, show, nil
}

// pageTexts finds main texts, of no more pages at once than there are processors.
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
