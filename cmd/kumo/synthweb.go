package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

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
at /.synth/score on every host, and /.synth/reset sets it back.`

func synthwebCommand() *cobra.Command {
	w := webFlags{}
	var opts synthweb.ServeOptions
	cmd := &cobra.Command{Use: "synthweb", Short: "Serve a made-up web that keeps score", Long: synthwebLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.DNS = true
			return serveWeb(cmd.Context(), cmd.OutOrStdout(), synthweb.New(w.config()), opts)
		}}
	w.bind(cmd, 100, 20_000)
	cmd.Flags().IntVar(&opts.Port, "port", 0, "listen on `PORT` of each address (0: a free one)")
	cmd.Flags().IntVar(&opts.Addresses, "addresses", 0, "spread the hosts over `N` loopback addresses (0: one each, at most 256)")
	cmd.Flags().BoolVar(&opts.Truth.Embeds, "embeds", false, "judge a crawler that fetches embeds")
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
	fmt.Fprintf(out, "%s\n\nkumo crawl --scope any --allow-private --dns-server %s %s\n\n", web, server.DNS(),
		strings.Join(server.SeedURLs(), " "))
	<-ctx.Done()
	fmt.Fprintln(out, server.Score())
	return nil
}
