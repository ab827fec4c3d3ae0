package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kumo/internal/app/verify"
	"kumo/internal/app/wire"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/base/stats"
)

const verifyLong = `Check all files of the crawl in DIR (default: this folder) against each other, and list faults. Of
several DIRs, or one with crawls in it, as the nodes of a crawl store, each is checked by itself.

  journal    every batch is complete; files have the lengths recorded in the last batch
  seen       the URL database: checksums, order, filters; fetched URLs have status and digest
  digests    the index of digests: the same; each record it refers to is in a WARC file
  frontier   the queues are valid; pending URLs are known and were not fetched
  warc       every record can be read completely and matches its digests; request, response and
             metadata belong together; records that revisits refer to exist
  cdxj       every record has its line, and every line its record; lines are sorted; index.cdxj is
             complete
  pages      every line of pages.jsonl refers to its record, with its digest, status and title; every
             record has its line
  text       every line of text.jsonl belongs to a page
  fields     every line of fields.jsonl belongs to a page, and refers to its record
  crawl.log  every fetch has one line, with the time, size and digest of its page
  skipped    excluded URLs are known and were not fetched
  asides     the same for deferred URLs
  urls       every known URL was fetched, excluded, or is pending: none is lost
  report     the counters of the state and of report.json match the files
  settings   config.yaml can be read

Data after the last commit of a killed crawl is not a fault: it is reported, and the next start of
the crawl truncates it. Files are read once, from beginning to end. Data that does not fit in memory
is sorted in a temporary folder, which needs about half the size of pages.jsonl and crawl.log.
Nothing in the crawl's folder changes. The crawl must not be running; if it is started, it waits.

With --sink, not the files are checked, but the records on a server (kumo export --to, kumo crawl
--sink): missing records, records of an earlier visit, and records that are not in the crawl.

DIR may be a storage location with uploaded files (s3://bucket/prefix). They are read there, record
by record, and compared with its manifest: sizes, and the digests of all files except WARC files,
whose records have digests. The state is not uploaded, so it is not checked. Files that are not
uploaded yet are not a fault; they are reported with their location.

Exit codes: 0 no faults, 1 faults, or the folder could not be read, 2 wrong usage.`

type verifyOptions struct {
	all, json, quiet bool
	sink             string
	cfg              verify.Config
}

func verifyCommand() *cobra.Command {
	o := &verifyOptions{}
	cmd := &cobra.Command{Use: "verify [DIR...]", Short: "Check all files of a crawl against each other", Long: verifyLong,
		Args: cobra.ArbitraryArgs,
		Example: "  kumo verify crawls/example.com\n  kumo verify --json --all crawls/example.com | jq .faults\n" +
			"  kumo verify --sink opensearch://localhost:9200/pages crawls/example.com\n" +
			"  kumo verify s3://bucket/news",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && o.sink == "" {
				return o.runAll(cmd, args)
			}
			if err := oneFolderAtMost(cmd, args); err != nil {
				return err
			}
			dir := append(args, ".")[0]
			if o.sink != "" {
				return o.compare(cmd, dir)
			}
			return o.run(cmd, dir)
		}}
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, fmt.Sprintf("list all faults (default: %d of each check)", defaultFaultLimit))
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.StringVar(&o.sink, "sink", "", "instead of files, compare records with the server at this `URL`")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not show progress")
	f.BoolVar(&o.cfg.Moved, "moved", false, "missing WARC files were moved on purpose: verify the rest")
	f.StringVar(&o.cfg.Temp, "temp", "", "sort in this `FOLDER` (default: the system's temporary folder)")
	return orOut(cmd)
}

const defaultFaultLimit = 20

var errFaults = errors.New("the crawl's files have faults")

// runAll verifies each of some crawls, such as the parts of the nodes of one.
func (o *verifyOptions) runAll(cmd *cobra.Command, names []string) error {
	parts, err := uploads.Parts(cmd.Context(), names...)
	if err != nil {
		return err
	}
	var faults error
	for _, name := range parts {
		if len(parts) > 1 && !o.json {
			fmt.Fprintf(cmd.OutOrStdout(), "%s:\n", name)
		}
		if err := o.run(cmd, name); errors.Is(err, errFaults) {
			faults = err
		} else if err != nil {
			return err
		}
	}
	return faults
}

func (o *verifyOptions) run(cmd *cobra.Command, name string) (err error) {
	src, err := uploads.OpenSource(cmd.Context(), name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(src.WithName(err), src.Close()) }()
	o.cfg.Disk = src.Disk
	out := &faultPrinter{w: cmd.OutOrStdout(), limit: defaultFaultLimit, printed: map[string]int{}}
	if o.all {
		out.limit = 0
	}
	out.collect = o.json
	o.cfg.Fault = out.fault
	line := newProgressLine(os.Stderr, !o.quiet)
	out.before = line.clear
	if line.w != nil {
		o.cfg.Progress = func(p verify.Progress) {
			if p.Total > 0 {
				line.show("%s: %d of %d MB", p.Check, p.Done>>20, p.Total>>20)
			} else {
				line.show("%s", p.Check)
			}
		}
	}
	check := wire.Verify
	if src.Remote {
		check = src.Verify
	}
	report, err := check(cmd.Context(), src.Dir, o.cfg)
	line.clear()
	if err != nil {
		return err
	}
	if o.json {
		err = out.printJSON(name, report)
	} else {
		err = out.print(report)
	}
	if err == nil && report.Faults > 0 {
		err = errFaults
	}
	return err
}

type faultPrinter struct {
	w       io.Writer
	limit   int // per check; 0: all
	printed map[string]int
	collect bool
	faults  []verify.Fault
	before  func()
}

func (p *faultPrinter) fault(f verify.Fault) {
	p.printed[f.Check]++
	n := p.printed[f.Check]
	if p.limit > 0 && n > p.limit {
		return
	}
	if p.collect {
		p.faults = append(p.faults, f)
		return
	}
	p.before()
	fmt.Fprintf(p.w, "fault: %s\n", &f)
	if n == p.limit {
		fmt.Fprintf(p.w, "more faults of %s are counted only: --all lists them\n", f.Check)
	}
}

func (p *faultPrinter) print(r *verify.Report) error {
	tab := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, c := range r.Checks {
		var counts []string
		for _, n := range c.Counts {
			counts = append(counts, stats.Grouped(n.N)+" "+stats.Unit(n.N, n.Unit))
		}
		result := "ok"
		if c.Faults > 0 {
			result = stats.Grouped(c.Faults) + " " + stats.Unit(c.Faults, "faults")
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\n", c.Name, strings.Join(counts, ", "), result)
	}
	err := tab.Flush()
	for _, c := range r.Checks {
		for i := range c.Notes {
			fmt.Fprintf(p.w, "note: %s\n", &c.Notes[i])
		}
	}
	return err
}

func (p *faultPrinter) printJSON(dir string, r *verify.Report) error {
	return writeJSON(p.w, struct {
		Folder string          `json:"folder"`
		OK     bool            `json:"ok"`
		Faults int64           `json:"faults"`
		First  []verify.Fault  `json:"first"` // of each check, or all
		Checks []*verify.Check `json:"checks"`
	}{dir, r.Faults == 0, r.Faults, p.faults, r.Checks})
}
