package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/setting"
	"kumo/internal/batch/collection"
	"kumo/internal/lab/synthweb"
)

type webFlags struct {
	seed         uint64
	hosts, pages int
	messy        bool
}

func (w *webFlags) bind(cmd *cobra.Command, hosts, pages int) {
	f := cmd.Flags()
	f.Uint64Var(&w.seed, "seed", 1, "`NUMBER` of the seed of the web")
	f.IntVar(&w.hosts, "hosts", hosts, "create `N` hosts that answer")
	f.IntVar(&w.pages, "pages", pages, "create `N` pages on all hosts together")
	f.BoolVar(&w.messy, "messy", w.messy, "also create faulty hosts and pages")
}

func (w *webFlags) config() synthweb.Config {
	if !w.messy {
		return synthweb.Clean(w.seed, w.hosts, w.pages)
	}
	cfg := synthweb.Messy(w.seed, w.hosts, w.pages)
	cfg.BurstEvery = 20 // gives hosts of a small web bursts of 429, too
	return cfg
}

const synthwebLong = `Serve a synthetic web on loopback until interrupted, then print the score of its servers.

It is for testing crawlers: the web depends only on the seed, and each host keeps a score. While it
runs, the score is at /.synth/score on every host, and /.synth/reset resets it.

With --languages, the hosts use many languages in turn, in UTF-8 and in older charsets. One page in
five does not declare its charset, and one in twenty-five is in another language than its host.
/.synth/pages lists each page with its language and charset: the expected result of a crawler. With
--day, the same web is available for different days, and --collections writes a collection for each
language, for kumo batch. The command to crawl it is printed:

  kumo synthweb --languages 27 --hosts 81 --pages 2000 --day 1 --port 8080 --collections web
  kumo synthweb --languages 27 --hosts 81 --pages 2000 --day 2 --port 8080 --collections web

Hosts have names, which the web's own name server resolves; with --by-address they have addresses
instead, so that any crawler can reach them. All flags can be combined, except --addresses with
--by-address.

With --script-share 0.3, three of ten pages show nothing without script. Their links are the same as
without it. The last field in /.synth/pages says how a page is built; kumo crawl --render auto
should reach all of them.`

// serveFlags are the flags of a web that is served without a crawl.
type serveFlags struct {
	opts     synthweb.ServeOptions
	cfg      synthweb.Config // settings that only these flags set
	latency  span
	pageSize int64
	dead     float64

	languages   []string
	collections string // a folder
}

func (f *serveFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.opts.Port, "port", 0, "listen on `PORT` of each address (0: any free port)")
	flags.IntVar(&f.opts.Addresses, "addresses", 0, "distribute the hosts over `N` loopback addresses (0: one each, at "+
		"most 256)")
	flags.BoolVar(&f.cfg.ByAddress, "by-address", false,
		"give each host its own address and no name (at most 62500)")
	flags.BoolVar(&f.cfg.OwnDomains, "own-domains", false, "give each host its own registered domain, h0000.test "+
		"instead of h0000.synth.test (not with --tls)")
	flags.BoolVar(&f.opts.Truth.Embeds, "embeds", false, "expect a crawler that fetches embeds")
	flags.BoolVar(&f.cfg.TLS, "tls", false, "serve HTTPS: TLS 1.3, with one self-signed ECDSA P-256 certificate for "+
		"all hosts")
	flags.Var(setting.Size(&f.pageSize), "page-size",
		"mean size of pages (0: 45KB); most are smaller, some much larger")
	flags.IntVar(&f.opts.PerConnection, "per-connection", 0, "close each connection after `N` answers (0: never)")
	flags.Var(&f.latency, "latency", "delay all answers of a host by a time of its own between "+
		"`MIN-MAX`, e.g. 500ms-9s")
	flags.Float64Var(&f.cfg.ScriptShare, "script-share", 0, "share of pages that a script builds, from 0 to 1: "+
		"client-side apps, streams, endless scrolling, hash routes, shadow roots, lazy images, one of these a host")
	flags.Float64Var(&f.dead, "dead", 0, "add dead hosts, `PERCENT` of --hosts: half of them refuse connections, the "+
		"others accept and never answer")
	flags.StringSliceVar(&f.languages, "languages", nil, "languages of the hosts, `CODES` separated by commas "+
		"or their number, at most "+strconv.Itoa(len(synthweb.Languages()))+", in the charsets used for them")
	flags.IntVar(&f.cfg.Day, "day", 0, "create the web as it is on day `N`, from 1: each day pages change, come "+
		"and go, and servers report unchanged pages (0: no days)")
	flags.StringVar(&f.collections, "collections", "", "write a collection for each language to `FOLDER`, for kumo "+
		"batch; with --languages and a --port")
}

func (f *serveFlags) config(w *webFlags) (synthweb.Config, error) {
	if w.hosts < 1 || w.pages < 1 {
		return synthweb.Config{}, usagef("--hosts %d --pages %d: a web has at least one host and one page", w.hosts, w.pages)
	}
	cfg := w.config()
	cfg.ByAddress, cfg.TLS, cfg.OwnDomains = f.cfg.ByAddress, f.cfg.TLS, f.cfg.OwnDomains
	if cfg.TLS && cfg.OwnDomains {
		return cfg, usagef("--own-domains and --tls: the certificate is for *.synth.test")
	}
	if f.pageSize > 0 {
		cfg.MedianSize = synthweb.MedianSize(int(f.pageSize))
	}
	var err error
	if cfg.Languages, err = webLanguages(f.languages); err != nil {
		return cfg, err
	}
	if cfg.Day = f.cfg.Day; cfg.Day < 0 {
		return cfg, usagef("--day %d: a number from 1 is wanted, or 0", cfg.Day)
	}
	if f.collections != "" && (len(cfg.Languages) == 0 || f.opts.Port == 0) {
		return cfg, usagef("--collections needs --languages, and a fixed --port")
	}
	if n := len(cfg.Languages); n > cfg.Hosts {
		return cfg, usagef("--languages: %d languages need as many --hosts", n)
	}
	if cfg.ScriptShare = f.cfg.ScriptShare; !(cfg.ScriptShare >= 0 && cfg.ScriptShare <= 1) {
		return cfg, usagef("--script-share %v: give a share from 0 to 1, such as 0.3", cfg.ScriptShare)
	}
	if cfg.ScriptShare > 0 && (len(cfg.Languages) > 0 || cfg.Day > 0 || w.messy) {
		return cfg, usagef("--script-share cannot be combined with --languages, --day and --messy")
	}
	cfg.Latency, cfg.Slowest = f.latency.least, f.latency.most
	if f.dead < 0 || f.dead > 1000 {
		return cfg, fmt.Errorf("--dead %v: give a percentage of the hosts, from 0 to 1000", f.dead)
	}
	if f.dead > 0 {
		cfg.Traits[synthweb.Refused] = int(f.dead * 5) // per 1,000; half of the hosts each
		cfg.Traits[synthweb.Hanging] = int(f.dead*10) - cfg.Traits[synthweb.Refused]
	}
	return cfg, nil
}

func synthwebCommand() *cobra.Command {
	w, f := webFlags{}, serveFlags{}
	cmd := &cobra.Command{Use: "synthweb", Short: "Serve a synthetic web that scores crawlers", Long: synthwebLong,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.config(&w)
			if err != nil {
				return err
			}
			f.opts.DNS = !cfg.ByAddress
			web := synthweb.New(cfg)
			if f.collections != "" {
				if err := writeCollections(web, cfg.Languages, f.opts.Port, f.collections); err != nil {
					return err
				}
			}
			return serveWeb(cmd.Context(), cmd.OutOrStdout(), web, f.opts, f.collections)
		}}
	w.bind(cmd, 100, 20_000)
	f.bind(cmd)
	return cmd
}

func webLanguages(words []string) (codes []string, err error) {
	all := synthweb.Languages()
	if len(words) == 1 {
		if n, err := strconv.Atoi(words[0]); err == nil {
			if n < 1 || n > len(all) {
				return nil, usagef("--languages %d: a number from 1 to %d is wanted", n, len(all))
			}
			return all[:n], nil
		}
	}
	for _, code := range words {
		if !slices.Contains(all, code) {
			return nil, usagef("--languages %s: there are %s", code, strings.Join(all, ", "))
		}
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes, nil
}

// writeCollections writes a collection for each language of a web to a folder. Its seeds are the hosts in that
// language.
func writeCollections(web *synthweb.Web, languages []string, port int, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for n, code := range languages {
		c := collection.New()
		c.Code, c.Scope, c.Depth, c.Recrawl = code, "host", 100, []string{"1s"}
		c.Interval = collection.Duration(20 * time.Millisecond)
		for i := n; i < web.Len(); i += len(languages) {
			c.Seeds = append(c.Seeds, web.URL(synthweb.Ref{Host: uint32(i)}, port))
		}
		data, err := c.YAML()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, code+".yaml"), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func serveWeb(
	ctx context.Context, out io.Writer, web *synthweb.Web, opts synthweb.ServeOptions, collections string,
) (err error) {
	server, err := synthweb.Serve(ctx, web, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if server.Fallback != nil {
		fmt.Fprintf(out, "note: all hosts share one address: %v\n", server.Fallback)
	}
	line := crawlLine(server)
	if collections != "" {
		line = commandLine(server, "kumo batch run", collections)
	}
	fmt.Fprintf(out, "%s\n\n%s\n\n", web, line)
	<-ctx.Done()
	fmt.Fprintln(out, server.Score())
	return nil
}

func crawlLine(s *synthweb.Server) string {
	return commandLine(s, "kumo crawl --scope any", s.SeedURLs()...)
}

// commandLine returns a command with the arguments that it needs to reach a server's web.
func commandLine(s *synthweb.Server, command string, what ...string) string {
	args := []string{command, "--allow-private"}
	if s.TLS() {
		args = append(args, "--insecure")
	}
	if s.DNS() != "" {
		args = append(args, "--dns-server", s.DNS())
	}
	return strings.Join(append(args, what...), " ")
}

// A span is a flag for a range of durations, MIN-MAX, or a single duration.
type span struct{ least, most time.Duration }

func (s *span) Type() string { return "MIN-MAX" }

func (s *span) String() string {
	if s.least == s.most {
		return s.least.String()
	}
	return s.least.String() + "-" + s.most.String()
}

func (s *span) Set(text string) error {
	from, to, both := strings.Cut(text, "-")
	if !both {
		to = from
	}
	least, err := time.ParseDuration(from)
	most, err2 := time.ParseDuration(to)
	if err != nil || err2 != nil || least < 0 || most < least {
		return fmt.Errorf("%q is not a range of durations: write it like 500ms-9s", text)
	}
	s.least, s.most = least, most
	return nil
}
