package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire"
	"kumo/internal/content/policy"
	"kumo/internal/engine/seeds"
	"kumo/internal/view/web/mcp"
	"kumo/internal/view/web/ui"
)

var mcpLong = `Serve crawls to programs that use the Model Context Protocol (MCP), such as assistants with a language
model. The crawls are in folders, and may be running. The tools search pages, return a page as Markdown,
explain why a URL was, or was not, crawled, and list hosts, totals and links of pages. For batch crawls,
in folders or at s3:// and hdfs:// URLs, the tools list collections, days and their records, and search
and return these. The tools change nothing. See docs/reference/mcp.md for the configuration of such a
program.

The protocol runs over standard input and output, if the assistant starts kumo; or over HTTP at ADDR/mcp
with --listen. HTTP clients send the token in the first folder's state/ui.json as Authorization: Bearer
TOKEN. Instead of folders, give the URL of a web page that kumo serves, as kumo open prints it, to query
its crawls.

With --allow-crawl there is an additional tool that crawls: one public host at a time, obeying its
robots.txt, at most ` +
	mcpCrawlLimits + `, into a
separate folder. It runs the scripts of pages in Chromium if that is wanted and installed.`

var mcpCrawlLimits = fmt.Sprintf("%d pages (--crawl-pages), %d MB (--crawl-size) and %d seconds", mcp.MaxPages,
	mcp.MaxBytes/1_000_000, mcp.MaxSeconds)

const mcpExample = `  kumo mcp crawls/example.com
  kumo mcp --listen 127.0.0.1:8091 crawls/*
  kumo mcp "$(kumo open -o crawls/example.com)"
  kumo mcp /data/news s3://bucket/news
  kumo mcp --allow-crawl --contact https://me.example/bot crawls/example.com`

type mcpServer struct {
	flags   uiFlags
	outDir  string // folder for the crawls that the tool makes; "": no such tool
	contact string
	private bool
	pages   int   // maximum pages of one crawl
	bytes   int64 // maximum bytes over the wire of one crawl
	browser setting.Browser
	log     *slog.Logger

	process  context.Context // ends when no more crawls may be started
	cancel   context.CancelFunc
	crawling sync.WaitGroup // running crawls

	mu      sync.Mutex // guards the following fields
	crawls  []ui.Crawl
	batches []ui.Batch
	servers []*ui.Server // the last server has all crawls; earlier ones still answer their requests
}

func mcpCommand() *cobra.Command {
	m := &mcpServer{}
	cmd := &cobra.Command{Use: "mcp [flags] FOLDER|PLACE...|URL", Long: mcpLong,
		Short:   "Serve crawls to language models by the Model Context Protocol",
		Example: mcpExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			m.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return m.run(cmd.Context(), args)
		}}
	f := cmd.Flags()
	m.flags.bind(f, "listen")
	l := f.Lookup("listen")
	l.Usage, l.NoOptDefVal = "serve HTTP at `ADDR`, under /mcp, with the token of the first folder", ""
	f.StringVar(&m.outDir, "allow-crawl", "", "offer a tool that crawls, into folders below `FOLDER`, given as "+
		"--allow-crawl=FOLDER (without one: crawls)")
	f.Lookup("allow-crawl").NoOptDefVal = "crawls"
	f.StringVar(&m.contact, "contact", "", "with --allow-crawl: a `URL` or mail address where site owners can reach you")
	f.BoolVar(&m.private, "allow-private", false,
		"with --allow-crawl: allow private, loopback and link-local addresses")
	f.IntVar(&m.pages, "crawl-pages", mcp.MaxPages, "with --allow-crawl: fetch at most `N` pages per crawl")
	f.StringVar(&m.browser.Path, "browser", "", "with --allow-crawl: render with this `PROGRAM` (default: the first of "+
		"chromium, google-chrome in PATH)")
	f.BoolVar(&m.browser.NoSandbox, setting.NoSandboxKey, false, "with --allow-crawl: turn the browser's sandbox off, as "+
		"root must: only for pages that are trusted")
	m.bytes = mcp.MaxBytes
	f.Var(setting.Size(&m.bytes), "crawl-size", "with --allow-crawl: receive at most this many bytes per crawl")
	f.SortFlags = false
	return cmd
}

func (m *mcpServer) run(ctx context.Context, args []string) error {
	cfg := mcp.Config{Version: job.Version}
	var dirs []string
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch {
	case len(args) == 0:
		return usagef("which crawls? name their folders, or the URL of a web page that serves them")
	case m.outDir == "" && (m.contact != "" || m.private || m.pages != mcp.MaxPages || m.bytes != mcp.MaxBytes ||
		m.browser.Path != "" || m.browser.NoSandbox):
		return usagef("--contact, --allow-private, --crawl-pages, --crawl-size, --browser and --browser-no-sandbox need " +
			"--allow-crawl")
	case m.pages < 1 || m.bytes < 1:
		return usagef("--crawl-pages and --crawl-size must be at least 1")
	// not the URL of a storage location
	case strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://"):
		at, err := url.Parse(args[0])
		if err != nil || at.Host == "" || len(args) > 1 {
			return usagef("%q: give one URL of a web page, as kumo open prints it, or folders", strings.Join(args, " "))
		}
		if m.outDir != "" {
			return usagef("--allow-crawl makes crawls on this machine: name folders, not a URL")
		}
		cfg.REST, cfg.Crawls, cfg.Batches = mcp.Remote(at), true, true
		first = at.Scheme + "://" + at.Host // without its token
	default:
		shown, late, err := contentOf(ctx, args)
		if err != nil {
			return err
		}
		for _, name := range late {
			m.log.Warn("the disk did not answer: assuming that this is a crawl's folder", "folder", name)
		}
		if len(shown.Experiments) > 0 {
			return usagef("%s has experiments, which MCP does not serve: name folders of crawls or batch crawls",
				shown.Experiments[0])
		}
		m.crawls, m.batches, dirs = shown.Crawls, shown.Batches, shown.dirs
		cfg.Crawls, cfg.Batches = len(m.crawls) > 0 || m.outDir != "", len(m.batches) > 0
		m.serve()
		m.process, m.cancel = context.WithCancel(ctx)
		defer m.close()
		cfg.REST = mcp.Local(m.rest)
		if m.outDir != "" {
			if m.contact == "" && !m.private {
				m.log.Warn("no --contact is set: owners of the crawled sites cannot reach you, and some will block you")
			}
			cfg.Crawl, cfg.MaxPages, cfg.MaxBytes = m.crawl, m.pages, m.bytes
		}
	}
	page, err := m.flags.listen()
	if err != nil {
		return err
	}
	srv := mcp.New(cfg)
	if page == nil {
		return mcp.Stdio(ctx, srv)
	}
	defer page.close()
	return m.listen(ctx, page, mcp.Handler(srv), dirs, first)
}

// listen serves over HTTP. The token is that of the first folder's web page. If crawls are given by URL, the token is
// stored in the user's cache folder.
func (m *mcpServer) listen(ctx context.Context, p *uiPage, h http.Handler, dirs []string, of string) error {
	token := ""
	if p.token {
		in, spare := "", userDir(of)
		if len(dirs) > 0 {
			in = dirs[0]
		}
		var err error
		if token, err = findToken(in, spare); err != nil {
			return err
		}
		if in == "" || saveToken(in, token) != nil { // the user may not have write permission for the folder
			in = spare
			err = saveToken(in, token)
		}
		if err != nil {
			return fmt.Errorf("store the token: %w", err)
		}
		m.log.Info("requests need Authorization: Bearer and the token in this file", "in", filepath.Join(in, folder.UIName))
	} else {
		m.log.Warn("requests need no token: every user of this machine has access")
	}
	m.log.Info("Model Context Protocol", "at", p.url()+"mcp")
	if p.open && p.flags.Cert == "" {
		m.log.Warn("requests and the token are not encrypted: --listen-cert enables TLS")
	}
	s := ui.New(ui.Config{Only: h, Hosts: p.hosts, Token: token, Secure: p.flags.Cert != "", Log: m.log})
	return s.Serve(ctx, p.listen, p.flags.Cert, p.flags.Key)
}

func saveToken(dir, token string) error {
	if dir == "" {
		return errors.New("this user has no cache folder")
	}
	n, err := readUIRecord(dir)
	if err != nil || n.Token == token {
		return err
	}
	// only a crawl has this folder already
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(folder.UIName)), 0o777); err != nil {
		return err
	}
	n.Token = token
	return n.write(dir)
}

func (m *mcpServer) rest() http.Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.servers[len(m.servers)-1]
}

// serve adds crawls to the served ones, and returns the name of the last one.
func (m *mcpServer) serve(more ...ui.Crawl) (name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crawls = append(m.crawls, more...)
	s := ui.New(ui.Config{Crawls: m.crawls, Batches: m.batches, Log: m.log,
		Documents: sharedDocuments()})
	m.servers = append(m.servers, s)
	if names := s.Names(); len(names) > 0 {
		name = names[len(names)-1]
	}
	return name
}

// close stops running crawls in an orderly way, then the servers.
func (m *mcpServer) close() {
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	m.crawling.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.servers {
		s.Close()
	}
}

// newCrawlContext returns a context for a crawl that also ends when the process ends. The process waits until the
// returned function is called.
func (m *mcpServer) newCrawlContext(ctx context.Context) (context.Context, func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process.Err() != nil {
		return nil, nil, errors.New("kumo mcp is ending")
	}
	m.crawling.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.process, cancel)
	return ctx, func() { stop(); cancel(); m.crawling.Done() }, nil
}

// crawl runs a crawl with the defaults of kumo crawl, within the limits.
func (m *mcpServer) crawl(ctx context.Context, w mcp.CrawlRequest) (_ *mcp.CrawlResult, err error) {
	u, err := seeds.ParseWritten(w.URL)
	if err != nil {
		return nil, err
	}
	ctx, end, err := m.newCrawlContext(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := os.MkdirAll(m.outDir, 0o777); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(m.outDir, job.NameOf(u)+"-")
	if err != nil {
		return nil, err
	}
	o := &options{}
	flags := crawlFlags(o)
	if err := flags.Parse([]string{"--out", dir, "--scope", "host", "--limit", strconv.Itoa(w.Pages), "--size-limit",
		strconv.FormatInt(m.bytes, 10), "--depth", strconv.Itoa(w.Depth),
		"--time-limit", strconv.Itoa(w.Seconds) + "s", "--tries", "1", "--contact", m.contact, "--allow-private=" +
			strconv.FormatBool(m.private), "--render", cmp.Or(w.Render, string(policy.RenderNever)), "--browser",
		m.browser.Path, "--browser-no-sandbox=" + strconv.FormatBool(m.browser.NoSandbox)}); err != nil {
		return nil, err
	}
	o.Job.Fetch.OnlyPublic = !m.private
	o.Job.Fetch.MaxBody = min(o.Job.Fetch.MaxBody, m.bytes) // the size limit is only checked between responses
	if err := o.resolve(ctx, flags, []string{u.String()}); err != nil {
		return nil, err
	}
	o.Job.Warn = func(err error) { m.log.Warn(err.Error(), "crawl", dir) }
	c, err := wire.Open(ctx, &o.Job)
	if err != nil {
		return nil, err
	}
	report, err := c.Run(ctx)
	if err = errors.Join(err, c.Close()); err != nil && !errors.Is(err, policy.ErrLimit) {
		return nil, fmt.Errorf("the crawl in %s has ended: %w", dir, err)
	}
	return &mcp.CrawlResult{Crawl: m.serve(crawlIn(dir)), Folder: filepath.ToSlash(dir), Ended: report.Ended,
		Pages: report.Pages, Bytes: report.Bytes, Failed: report.Failed, Errors: report.Errors, Waiting: report.Waiting}, nil
}
