package main

import (
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

var mcpLong = `Let programs that speak the Model Context Protocol, such as assistants with a language model, ask crawls in folders, whether they run or
have ended. They get tools to search pages by words, to read a page as Markdown, and to ask why a URL was, or was not, crawled; hosts, totals and
links of pages, too. Of batch crawls, in the places of kumo batch, which s3:// and hdfs:// URLs name as well, they get
tools to list collections, days and their records, to search and to read these. They change nothing. docs/reference/mcp.md says how to name kumo to such a program.

It speaks over standard input and output, as a program that the assistant starts; or over HTTP at ADDR/mcp with --listen, to
programs that send the token in the first folder's state/ui.json as Authorization: Bearer TOKEN. A URL in place of folders is that of a web page that kumo serves, as
kumo open prints it: its crawls are asked.

With --allow-crawl there is one more tool, which crawls: one public host at a time, as its robots.txt wants, at most ` +
	mcpCrawlLimits + `, into a
folder of its own.`

var mcpCrawlLimits = fmt.Sprintf("%d pages (--crawl-pages), %d MB (--crawl-size) and %d seconds", mcp.MaxPages,
	mcp.MaxBytes/1_000_000, mcp.MaxSeconds)

const mcpExample = `  kumo mcp crawls/example.com
  kumo mcp --listen 127.0.0.1:8091 crawls/*
  kumo mcp "$(kumo open -o crawls/example.com)"
  kumo mcp /data/news s3://bucket/news
  kumo mcp --allow-crawl --contact https://me.example/bot crawls/example.com`

type mcpServer struct {
	flags   uiFlags
	outDir  string // a folder for crawls that are made; "": none are
	contact string
	private bool
	pages   int   // of one crawl at most
	bytes   int64 // over the wire, of one crawl at most
	log     *slog.Logger

	process  context.Context // ends when no more crawls are made
	cancel   context.CancelFunc
	crawling sync.WaitGroup // has those that are made

	mu      sync.Mutex // guards below
	crawls  []ui.Crawl
	batches []ui.Batch
	servers []*ui.Server // the last has all crawls; those before still answer what they were asked
}

func mcpCommand() *cobra.Command {
	m := &mcpServer{}
	cmd := &cobra.Command{Use: "mcp [flags] FOLDER|PLACE...|URL", Long: mcpLong,
		Short:   "Let language models ask crawls, by the Model Context Protocol",
		Example: mcpExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			m.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return m.run(cmd.Context(), args)
		}}
	f := cmd.Flags()
	m.flags.bind(f, "listen")
	l := f.Lookup("listen")
	l.Usage, l.NoOptDefVal = "serve over HTTP at `ADDR`, below /mcp, to whoever has the first folder's token", ""
	f.StringVar(&m.outDir, "allow-crawl", "", "offer a tool that crawls, into folders below `FOLDER`, given as "+
		"--allow-crawl=FOLDER (alone: crawls)")
	f.Lookup("allow-crawl").NoOptDefVal = "crawls"
	f.StringVar(&m.contact, "contact", "", "with --allow-crawl: a `URL` or mail address where site owners can reach you")
	f.BoolVar(&m.private, "allow-private", false,
		"with --allow-crawl: hosts with private, loopback and link-local addresses, too")
	f.IntVar(&m.pages, "crawl-pages", mcp.MaxPages, "with --allow-crawl: fetch at most `N` pages in one crawl")
	m.bytes = mcp.MaxBytes
	f.Var(setting.Size(&m.bytes), "crawl-size", "with --allow-crawl: receive at most so many bytes in one crawl")
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
		return usagef("which crawls? name their folders, or the URL of a web page of theirs")
	case m.outDir == "" && (m.contact != "" || m.private || m.pages != mcp.MaxPages || m.bytes != mcp.MaxBytes):
		return usagef(
			"--contact, --allow-private, --crawl-pages and --crawl-size say how is crawled: give --allow-crawl, too",
		)
	case m.pages < 1 || m.bytes < 1:
		return usagef("--crawl-pages and --crawl-size bound each crawl: numbers from 1 on are wanted")
	case strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://"): // and no place's URL
		at, err := url.Parse(args[0])
		if err != nil || at.Host == "" || len(args) > 1 {
			return usagef("%q: one URL of a web page is wanted, as kumo open prints it, or folders", strings.Join(args, " "))
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
			m.log.Warn("the disk has not answered: taken for a crawl's folder", "folder", name)
		}
		if len(shown.Experiments) > 0 {
			return usagef("%s has experiments, which cannot be asked: name folders of crawls, or places of batch crawls",
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
				m.log.Warn("no --contact is set: owners of the sites that are crawled cannot reach you, and some will block you")
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

// listen serves over HTTP. The token is that of the first folder's web page; of a URL, where there is no folder, this
// user has one.
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
		if in == "" || keepToken(in, token) != nil { // the folder may not be this user's to write in
			in = spare
			err = keepToken(in, token)
		}
		if err != nil {
			return fmt.Errorf("keep the token: %w", err)
		}
		m.log.Info("requests need Authorization: Bearer and the token", "in", filepath.Join(in, folder.UIName))
	} else {
		m.log.Warn("there is no token: every user of this machine is answered")
	}
	m.log.Info("Model Context Protocol", "at", p.url()+"mcp")
	if p.open && p.flags.Cert == "" {
		m.log.Warn("what is asked and the token go over the network as they are: --listen-cert has them encrypted")
	}
	s := ui.New(ui.Config{Only: h, Hosts: p.hosts, Token: token, Secure: p.flags.Cert != "", Log: m.log})
	return s.Serve(ctx, p.listen, p.flags.Cert, p.flags.Key)
}

func keepToken(dir, token string) error {
	if dir == "" {
		return errors.New("this user has no cache folder")
	}
	n, err := readUIRecord(dir)
	if err != nil || n.Token == token {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(folder.UIName)), 0o777); err != nil { // only a crawl has it
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

// serve has crawls be asked, and gives the last one's name in questions.
func (m *mcpServer) serve(more ...ui.Crawl) (name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crawls = append(m.crawls, more...)
	s := ui.New(ui.Config{Crawls: m.crawls, Batches: m.batches, Log: m.log})
	m.servers = append(m.servers, s)
	if names := s.Names(); len(names) > 0 {
		name = names[len(names)-1]
	}
	return name
}

// close ends crawls that are being made in order, and what answers.
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

// begin has a crawl end, in order, also when the process does, which waits for it.
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

// crawl makes a crawl, with the settings that kumo crawl has for who sets none, and within bounds.
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
			strconv.FormatBool(m.private)}); err != nil {
		return nil, err
	}
	o.Job.Fetch.OnlyPublic = !m.private
	o.Job.Fetch.MaxBody = min(o.Job.Fetch.MaxBody, m.bytes) // the limit is looked at between answers
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
