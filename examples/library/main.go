// Library is an example of a crawler in its own module. It stores the title and main text of each page durably as a
// line of JSON, and prints totals at the end.
//
//	library pages.jsonl https://example.com/
//
// Ctrl-C stops it; the same command resumes. Without arguments it crawls a few pages that it serves itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"kumo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	switch len(args) {
	case 0:
		return demo(ctx, out)
	case 1:
		return errors.New("usage: library [FILE URL...]")
	}
	return crawl(ctx, out, args[0], args[1:])
}

// demo crawls a few pages that it serves itself.
func demo(ctx context.Context, out io.Writer) error {
	pages := map[string]string{
		"/":      `<title>Home</title><a href="/tides">Tides</a> <a href="/login">Log in</a>`,
		"/tides": `<title>Tides</title><h1>Tides</h1><p>The tide comes in twice a day.</p><a href="/gone">x</a>`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
	defer s.Close()
	dir, err := os.MkdirTemp("", "library-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return crawl(ctx, out, filepath.Join(dir, "pages.jsonl"), []string{s.URL}, kumo.Delay(0))
}

// crawl stores the pages of a crawl in a file, and the crawl's state in a folder beside it.
func crawl(ctx context.Context, out io.Writer, file string, seeds []string, opts ...kumo.Option) (err error) {
	lines, err := openLines(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	c := kumo.New(append([]kumo.Option{kumo.Out(file + ".crawl"), kumo.Keep(lines)}, opts...)...)
	c.OnLink(func(l *kumo.Link) {
		if l.Element == "a" && strings.EqualFold(l.Text, "log in") {
			l.Veto("nobody logs in here")
		}
	})
	for p, err := range c.Pages(ctx, seeds...) {
		if err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintln(out, p.Status, p.Title)
	}
	n := c.Stats()
	_, err = fmt.Fprintf(out, "%d pages, %d failed, %d excluded, %d waiting\n", n.Pages, n.Failed, n.Skipped, n.Waiting)
	return err
}
