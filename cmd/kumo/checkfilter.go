package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	"kumo/internal/engine/filter"
	"kumo/internal/engine/filter/ask"
	"kumo/internal/view/text"
)

const filterLong = `What does a program for kumo crawl --filter answer?

COMMAND, which may also be a Starlark file (FILE.star), is started once, and gets one question after
another. For a URL, it is asked about a link to it, about the request for it, and, after fetching,
about the page, as far as the program handles these. For a FILE, it is asked about the page, as if
its URL were --base, and about its links.

Each answer is printed with its time. A line without an answer has the error. The program's standard
error, and the reasons for restarting it, are printed to standard error. The protocol is described
in docs/reference/filters.md. With --json each line of output is an object.`

const filterExample = `  kumo check filter ./my.py https://example.com/ https://example.com/print/1
  kumo check filter 'python3 my.py --strict' page.html --base https://example.com/`

type filterCheck struct {
	filters setting.Values // only its Filter is used
	src     source
	base    string
	links   int
	asJSON  bool
}

func checkFilter() *cobra.Command {
	c := &filterCheck{}
	cmd := &cobra.Command{Use: "filter COMMAND FILE|URL...",
		Short: "What does a program for kumo crawl --filter answer?", Long: filterLong, Example: filterExample,
		DisableFlagsInUseLine: true, RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) }}
	f := cmd.Flags()
	c.filters.Reset()
	for _, key := range []string{"filter-timeout", "filter-memory"} {
		addFlag(f, setting.Find(key), &c.filters)
	}
	f.StringVar(&c.base, "base", "http://localhost/", "treat a file as the page at this `URL`")
	f.IntVar(&c.links, "links", 20, "ask about the first `N` links of a file")
	f.BoolVar(&c.asJSON, "json", false, "print JSON, one object per line")
	return c.src.bind(cmd)
}

func (c *filterCheck) run(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return &usage{errors.New("wrong number of arguments: give a command and at least one URL or file")}
	}
	programs := &c.filters.Filter
	programs.Commands, programs.Procs, programs.Default = args[:1], 1, string(filter.Stop)
	if err := checkFilters(programs); err != nil {
		return err
	}
	asked, err := openFilters(cmd.Context(), programs, "check", func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return err
	}
	defer asked.close()
	if len(asked) == 0 {
		return usagef("the command is empty")
	}
	mute := 0
	rows := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	tell := func(t *ask.Trial) error {
		if t.Error != "" {
			mute++
		}
		if c.asJSON {
			return text.JSON(cmd.OutOrStdout(), t)
		}
		fmt.Fprintf(rows, "%s\t%s\t%.1f ms\t%s\n", t.Point, filter.Plain(t.URL, 100), t.Millis, t.Summary())
		return nil
	}
	for _, name := range args[1:] {
		questions, err := c.readQuestions(cmd.Context(), asked[0].Choice(), name)
		if err == nil {
			err = ask.Try(asked[0], questions, tell)
		}
		if err := errors.Join(err, rows.Flush()); err != nil {
			return err
		}
	}
	if mute > 0 {
		return fmt.Errorf("%d of the questions had no answer", mute)
	}
	return nil
}

func (c *filterCheck) readQuestions(ctx context.Context, wants *filter.Choice, name string) ([]filter.Question, error) {
	if !isURL(name) {
		body, err := readFile(name)
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {cmp.Or(fileTypes[filepath.Ext(name)], "text/html")}}
		return ask.PageQuestions(wants, c.base, http.StatusOK, header, body, c.links)
	}
	all := ask.URLQuestions(wants, name)
	if !wants.Asks(filter.Record) {
		return all, nil
	}
	doc, err := c.src.fetch(ctx, name, maxRedirects)
	if err != nil {
		return nil, err
	}
	more, err := ask.PageQuestions(wants, doc.url, doc.status, doc.header, doc.body, 0)
	return append(all, more...), err
}
