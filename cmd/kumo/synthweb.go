package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/synthweb"
)

// webFlags say which web is made.
type webFlags struct {
	seed         uint64
	hosts, pages int
	messy        bool
}

func (w *webFlags) bind(cmd *cobra.Command, hosts, pages int) {
	f := cmd.Flags()
	f.Uint64Var(&w.seed, "seed", 1, "make the web that belongs to this `NUMBER`")
	f.IntVar(&w.hosts, "hosts", hosts, "make `N` hosts that answer")
	f.IntVar(&w.pages, "pages", pages, "make `N` pages, over all hosts")
	f.BoolVar(&w.messy, "messy", w.messy, "make bad hosts and bad pages, too")
}

func (w *webFlags) config() synthweb.Config {
	if !w.messy {
		return synthweb.Clean(w.seed, w.hosts, w.pages)
	}
	cfg := synthweb.Messy(w.seed, w.hosts, w.pages)
	cfg.BurstEvery = 20 // hosts of a small web have their bursts, too
	return cfg
}

const synthwebLong = `Serve a made-up web on loopback until interrupted, then say what its servers saw.

It is for trying crawlers out: the web is the same for the same seed, and each host keeps score. While it runs the score is
at /.synth/score on every host, and /.synth/reset sets it back.

Hosts have names, which the web's own name server knows; with --by-address they have addresses instead, so that any crawler
finds them. The flags can be combined as you like, but for --addresses with --by-address.`

// serveFlags say what is particular to a web that is served by itself.
type serveFlags struct {
	opts     synthweb.ServeOptions
	cfg      synthweb.Config // what these flags alone set
	latency  span
	pageSize int64
	dead     float64
}

func (f *serveFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.opts.Port, "port", 0, "listen on `PORT` of each address (0: a free one)")
	flags.IntVar(&f.opts.Addresses, "addresses", 0, "spread the hosts over `N` loopback addresses (0: one each, at "+
		"most 256)")
	flags.BoolVar(&f.cfg.ByAddress, "by-address", false,
		"give each host an address of its own and no name (at most 62500)")
	flags.BoolVar(&f.opts.Truth.Embeds, "embeds", false, "judge a crawler that fetches embeds")
	flags.BoolVar(&f.cfg.TLS, "tls", false, "serve HTTPS: TLS 1.3, with one self-signed ECDSA P-256 certificate for "+
		"all hosts")
	flags.Var(size{&f.pageSize}, "page-size", "make pages of this mean size (0: 45KB); most are smaller, some much larger")
	flags.IntVar(&f.opts.PerConnection, "per-connection", 0, "close each connection after `N` answers (0: never)")
	flags.Var(&f.latency, "latency", "let each host wait before all its answers, for a time of its own between "+
		"`MIN-MAX`, e.g. 500ms-9s")
	flags.Float64Var(&f.dead, "dead", 0, "add dead hosts, `PERCENT` of --hosts: half of them refuse connections, the "+
		"others accept and never answer")
}

// config is the web that all flags together describe.
func (f *serveFlags) config(w *webFlags) (synthweb.Config, error) {
	cfg := w.config()
	cfg.ByAddress, cfg.TLS = f.cfg.ByAddress, f.cfg.TLS
	if f.pageSize > 0 {
		cfg.MedianSize = synthweb.MedianSize(int(f.pageSize))
	}
	cfg.Latency, cfg.Slowest = f.latency.least, f.latency.most
	if f.dead < 0 || f.dead > 1000 {
		return cfg, fmt.Errorf("--dead %v: write a percentage of the hosts, from 0 to 1000", f.dead)
	}
	if f.dead > 0 {
		cfg.Traits[synthweb.Refused] = int(f.dead * 5) // in a thousand; a half each
		cfg.Traits[synthweb.Hanging] = int(f.dead*10) - cfg.Traits[synthweb.Refused]
	}
	return cfg, nil
}

func synthwebCommand() *cobra.Command {
	w, f := webFlags{}, serveFlags{}
	cmd := &cobra.Command{Use: "synthweb", Short: "Serve a made-up web that keeps score", Long: synthwebLong,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.config(&w)
			if err != nil {
				return err
			}
			f.opts.DNS = !cfg.ByAddress
			return serveWeb(cmd.Context(), cmd.OutOrStdout(), synthweb.New(cfg), f.opts)
		}}
	w.bind(cmd, 100, 20_000)
	f.bind(cmd)
	return cmd
}

func serveWeb(ctx context.Context, out io.Writer, web *synthweb.Web, opts synthweb.ServeOptions) (err error) {
	server, err := synthweb.Serve(ctx, web, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if server.Fallback != nil {
		fmt.Fprintf(out, "note: all hosts share one address: %v\n", server.Fallback)
	}
	fmt.Fprintf(out, "%s\n\n%s\n\n", web, crawlLine(server))
	<-ctx.Done()
	fmt.Fprintln(out, server.Score())
	return nil
}

// crawlLine is the command that crawls a server's web.
func crawlLine(s *synthweb.Server) string {
	args := []string{"kumo crawl --scope any --allow-private"}
	if s.TLS() {
		args = append(args, "--insecure")
	}
	if s.DNS() != "" {
		args = append(args, "--dns-server", s.DNS())
	}
	return strings.Join(append(args, s.SeedURLs()...), " ")
}

// A span is a flag for a range of durations: MIN-MAX, or one of them.
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
