package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kumo/internal/page"
	"kumo/internal/parse"
	"kumo/internal/wire"
)

const (
	maxRedirects = 10       // of a page; robots.txt has fewer
	maxDocument  = 64 << 20 // bytes of a file
)

// A source opens what a verb is to read: a URL, a file or standard input.
type source struct {
	get     wire.Get
	timeout time.Duration
}

func (s *source) bind(f *pflag.FlagSet) {
	c := &s.get.Fetch
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "give a URL up after this time, redirects and all")
	f.StringVar(&c.UserAgent, "user-agent", "", "fetch with this User-Agent (default: kumo's)")
	f.BoolVar(&c.InsecureTLS, "insecure", false, "accept any TLS certificate")
	f.BoolVar(&c.AllowPrivate, "allow-private", false, "follow redirects to private addresses, too; a URL that is given may be private anyway")
	f.StringArrayVar(&c.Resolve, "resolve", nil, "connect to ADDR for HOST:PORT, as `HOST:PORT:ADDR` (repeatable)")
	f.StringVar(&c.DNSServer, "dns-server", "", "ask this name server (`HOST:PORT`) instead of the system's")
}

// A document is what was to be read. Of a file nothing but the body is known, and it lies nowhere.
type document struct {
	body   []byte
	url    string
	status int // 0 for a file
	header http.Header
}

func (d *document) contentType() string { return d.header.Get("Content-Type") }

// open reads a document. Redirects are followed so many times.
func (s *source) open(ctx context.Context, name string, redirects int) (*document, error) {
	if isURL(name) {
		return s.fetch(ctx, name, redirects)
	}
	body, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return &document{body: body, url: "http://localhost/"}, nil
}

func (s *source) fetch(ctx context.Context, url string, redirects int) (*document, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	get := s.get
	get.Redirects = redirects
	answers, err := get.URL(within, url)
	for _, a := range answers {
		fmt.Fprintln(os.Stderr, came(a))
	}
	switch {
	case err == nil:
	case ctx.Err() == nil && within.Err() != nil:
		return nil, fmt.Errorf("%w: no answer from %s within %v; --timeout gives it longer", errNothing, url, s.timeout)
	case isUsage(err) || ctx.Err() != nil:
		return nil, err
	default:
		return nil, fmt.Errorf("%w: %w", errNothing, err)
	}
	last := answers[len(answers)-1]
	return &document{body: last.Body, url: last.URL, status: last.Status, header: last.Header}, nil
}

// came says in a line what a URL answered.
func came(a *page.Response) string {
	line := fmt.Sprintf("%s: %d", a.URL, a.Status)
	if to := a.Header.Get("Location"); to != "" {
		return line + fmt.Sprintf(", leads to %q", to)
	}
	if t := parse.MediaType(a.Header.Get("Content-Type")); t != "" {
		line += ", " + t
	}
	line += fmt.Sprintf(", %d bytes", len(a.Body))
	if a.Truncated != page.Whole {
		line += fmt.Sprintf(", cut short (%s)", a.Truncated)
	}
	if a.Malformed != "" {
		line += fmt.Sprintf(", damaged: %q", a.Malformed)
	}
	return line
}

func isURL(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// readFile reads a file, or standard input for "-".
func readFile(name string) ([]byte, error) {
	in := os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &usage{fmt.Errorf("%w (what is on the web needs its https:// or http://)", err)}
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return nil, &usage{err}
	case len(body) > maxDocument:
		return nil, &usage{fmt.Errorf("%s is longer than %d MiB", name, maxDocument>>20)}
	}
	return body, nil
}
