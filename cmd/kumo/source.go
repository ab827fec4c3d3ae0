package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/get"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/login"
	"kumo/internal/content/parse"
	"kumo/internal/content/render/chromium"
	"kumo/internal/engine/crawl"
)

const (
	maxRedirects = crawl.DefaultRedirects // for pages; fewer for robots.txt
	maxDocument  = 64 << 20               // maximum size of a file in bytes
)

// A source opens the input of a command: a URL, a file or standard input.
type source struct {
	get     get.Client
	timeout time.Duration
	login   string // name of a file

	renders bool // pages are read after their scripts
	browser chromium.Config
}

func (s *source) bind(cmd *cobra.Command) *cobra.Command {
	f, c := cmd.Flags(), &s.get.Fetch
	durationVar(f, &s.timeout, "timeout", 30*time.Second, "timeout for a URL, including redirects")
	f.StringVar(&c.UserAgent, "user-agent", "", "send this User-Agent (default: kumo's)")
	bindTLS(f, &c.InsecureTLS, &c.PostQuantumTLS, &c.LegacyTLS)
	f.BoolVar(&c.AllowPrivate, "allow-private", false, "follow redirects to private addresses, too; the URL itself "+
		"may always be private")
	f.StringVar(&s.login, "login", "", "log in first, as configured in `FILE` (see docs/how-to/crawl-behind-a-login.md)")
	f.BoolVar(&s.get.NoCookies, "no-cookies", false, "ignore cookies set by redirects")
	f.StringArrayVar(&c.Resolve, "resolve", nil, "connect to ADDR for HOST:PORT, as `HOST:PORT:ADDR` (repeatable)")
	f.StringVar(&c.DNSServer, "dns-server", "", "ask this name server (`HOST:PORT`) instead of the system's")
	return cmd
}

func bindTLS(f *pflag.FlagSet, insecure, postQuantum, legacy *bool) {
	f.BoolVar(insecure, "insecure", false, "accept any TLS certificate")
	f.BoolVar(postQuantum, "tls-post-quantum", false, "use ML-KEM key exchange, too: 0.25 ms of CPU per handshake")
	f.BoolVar(legacy, "tls-legacy", false, "accept TLS 1.0 and 1.1, and cipher suites that browsers have dropped")
}

// A sourceFile is the content of a URL or a file.
type sourceFile struct {
	body        []byte
	contentType string      // for a file, by its name; "" if unknown
	url         string      // "" for a file
	status      int         // 0 for a file
	header      http.Header // nil for a file
}

// open reads a document. It follows up to the given number of redirects; more of them give get.ErrRedirects together
// with the last answer.
func (s *source) open(ctx context.Context, name string, redirects int) (*sourceFile, error) {
	if isURL(name) {
		return s.fetch(ctx, name, redirects)
	}
	body, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return &sourceFile{body: body, contentType: fileTypes[strings.ToLower(filepath.Ext(name))]}, nil
}

// fileTypes are the media types that servers usually send, by file name extension.
var fileTypes = map[string]string{".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml",
	".txt": "text/plain", ".xml": "application/xml", ".css": "text/css", ".js": "text/javascript",
	".mjs": "text/javascript", ".json": "application/json"}

func (s *source) fetch(ctx context.Context, url string, redirects int) (*sourceFile, error) {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	get := s.get
	get.Redirects = redirects
	if s.login != "" {
		logins, err := login.Load(s.login)
		if err != nil {
			return nil, usagef("--login: %w", err)
		}
		get.Logins = logins
	}
	answers, err := get.URL(within, url)
	for _, a := range answers {
		fmt.Fprintln(os.Stderr, answerLine(a))
	}
	switch {
	case err == nil || isUsage(err) || ctx.Err() != nil:
	case within.Err() != nil:
		err = fmt.Errorf("%w: no answer from %s within %v; see --timeout", errNothing, url, s.timeout)
	default:
		err = fmt.Errorf("%w: %w", errNothing, err)
	}
	if len(answers) == 0 {
		return nil, err
	}
	last := answers[len(answers)-1]
	return &sourceFile{body: last.Body, contentType: last.Header.Get("Content-Type"), url: last.URL, status: last.Status,
		header: last.Header}, err
}

// answerLine describes the answer of a URL in one line.
func answerLine(a *page.Response) string {
	line := fmt.Sprintf("%s: %d", a.URL, a.Status)
	if to := a.Header.Get("Location"); to != "" {
		return line + fmt.Sprintf(", leads to %q", to)
	}
	if t := parse.MediaType(a.Header.Get("Content-Type")); t != "" {
		line += ", " + t
	}
	line += ", " + stats.Count(len(a.Body), "bytes")
	if a.Truncated != page.Whole {
		line += fmt.Sprintf(", truncated (%s)", a.Truncated)
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
			return nil, &usage{fmt.Errorf("%w (a URL must start with https:// or http://)", err)}
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
