package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/wire/places"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	batchinspect "kumo/internal/batch/inspect"
	"kumo/internal/view/results"
	"kumo/internal/view/web/ui"
)

const serveLong = `Serve a web page and a REST API of the contents of folders:

  a crawl        running or not: its progress, hosts and URLs, and its pages with headers, text
                 and links, and as archived
  batch crawls   the --place of kumo batch: collections by day, growth, a day's files and records, a
                 record's text and XML; also s3:// and hdfs:// URLs. A running batch shows its
                 progress
  experiments    the --out folder of kumo sim, or a folder of such folders: tables, plots, and the
                 statements of papers compared with measurements

With --allow-start DIR the page starts crawls in folders below DIR, resumes crawls that have ended,
and visits their pages again by a schedule. These crawls run until they are done, or the server
ends; kumo serve shows all crawls below DIR. Whoever has the token can then send requests from this
machine.

With --crawl it shows all nodes of a crawl of several nodes. See docs/reference/web-page.md for the
page, and docs/reference/rest.md for the API.

The page queries a running crawl, and can pause, resume, stop and change it. It reads the files of a
crawl that has ended, and switches when the crawl is started. Access needs the token in the URL that
kumo open prints; with a certificate, the page uses TLS.`

type webContent struct {
	ui.Config
	dirs []string // local folders, in the given order
}

// inspectTimeout is how long kumo serve waits for folders to be inspected.
const inspectTimeout = 2 * time.Second

// contentOf finds out what the folders and storage locations contain. It inspects local folders in parallel, because
// disks may be slow. A folder that is not inspected in time is treated as a crawl, and returned in late.
func contentOf(ctx context.Context, names []string) (_ *webContent, late []string, err error) {
	type kind struct {
		parts webContent
		err   error
	}
	kinds, turns := make([]chan kind, len(names)), newSemaphore()
	for i, name := range names {
		kinds[i] = make(chan kind, 1)
		go turns.do(func() {
			var k kind
			k.err = k.parts.add(ctx, name)
			kinds[i] <- k
		})
	}
	over, end := context.WithTimeout(ctx, inspectTimeout)
	defer end()
	s := &webContent{}
	for i, name := range names {
		var k kind
		if places.IsURL(name) {
			k = <-kinds[i]
		} else {
			select {
			case k = <-kinds[i]:
			case <-over.Done():
				select {
				case k = <-kinds[i]:
				default:
					late = append(late, name)
					k.parts.Crawls, k.parts.dirs = []ui.Crawl{crawlIn(name)}, []string{name}
				}
			}
		}
		if k.err != nil {
			return nil, nil, k.err
		}
		s.Crawls, s.Batches = append(s.Crawls, k.parts.Crawls...), append(s.Batches, k.parts.Batches...)
		s.Experiments, s.dirs = append(s.Experiments, k.parts.Experiments...), append(s.dirs, k.parts.dirs...)
	}
	return s, late, nil
}

func (s *webContent) add(ctx context.Context, name string) error {
	if places.IsURL(name) {
		return s.addBatches(ctx, name)
	}
	saved, err := folder.ReadSettings(name)
	switch {
	case err != nil:
		return err
	case len(saved) > 0:
		s.Crawls = append(s.Crawls, crawlIn(name))
	default:
		found, err := results.Find(name)
		if err == nil && len(found) > 0 {
			s.Experiments = append(s.Experiments, name)
		} else if err := s.addBatches(ctx, name); err != nil {
			return err
		}
	}
	s.dirs = append(s.dirs, name)
	return nil
}

// addBatches adds the batch crawls of a storage location. It returns an error if there are none.
func (s *webContent) addBatches(ctx context.Context, name string) error {
	if _, err := os.Stat(name); err != nil && !places.IsURL(name) {
		return advice.Usage("%s: there is no such folder", name)
	}
	at, err := places.Open(ctx, name)
	if err != nil {
		return err
	}
	all, err := batchinspect.Collections(ctx, at)
	switch {
	case err != nil && len(all) == 0:
		return err
	case len(all) == 0:
		return noneIn(name)
	}
	s.Batches = append(s.Batches, ui.Batch{Name: name, Place: at})
	return nil
}

// noneIn returns the error for a folder without anything to show.
func noneIn(name string) error {
	return advice.With(advice.Usage("%s: there is neither a crawl nor a batch crawl, nor results of kumo sim --out",
		name),
		"name the --out folder of kumo crawl or kumo sim, or the --place of kumo batch run")
}

func crawlIn(dir string) ui.Crawl {
	return withFiles(ui.Crawl{Dir: dir,
		Open:         func(ctx context.Context) (*inspect.View, error) { return openView(ctx, dir) },
		FolderWanted: folder.At(dir, vfs.OS).WantedByCrawl})
}

// allowStart lets users of the page start crawls below a folder, and shows those that are there. wait waits for their
// end after ctx has ended.
func (s *webContent) allowStart(ctx context.Context, root string, log *slog.Logger) (wait func(), err error) {
	wait = func() {}
	starter, err := newCrawlStarter(ctx, root, log)
	if err != nil {
		return wait, err
	}
	there, err := starter.crawls()
	if err != nil {
		return wait, err
	}
	for _, dir := range there {
		if !slices.ContainsFunc(s.dirs, func(other string) bool { return filepath.Clean(other) == dir }) {
			s.Crawls, s.dirs = append(s.Crawls, crawlIn(dir)), append(s.dirs, dir)
		}
	}
	for _, c := range s.Crawls {
		if c.Cluster == nil {
			starter.addDir(c.Dir)
		}
	}
	s.dirs, s.Starter = append(s.dirs, root), starter
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		starter.follow()
	}()
	return func() { <-ended }, nil
}

func serveCommand() *cobra.Command {
	u, c := &uiFlags{}, &clusterFlags{}
	startIn := ""
	cmd := &cobra.Command{Use: "serve [flags] FOLDER|PLACE... | --crawl NAME | --allow-start DIR",
		Short: "Serve a web page of crawls, batch crawls and experiments", Long: serveLong,
		Example: `  kumo serve crawls/example.com
  kumo serve crawls/*
  kumo serve /data/news s3://bucket/news
  kumo serve --allow-start crawls
  kumo serve --crawl news --join 10.0.0.1:7070 --secret-file cluster.secret
  kumo serve --listen=0.0.0.0:8443 --listen-cert cert.pem --listen-key key.pem crawls/news`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && c.crawl == "" && startIn == "" {
				return usagef("what to serve? name folders of crawls, storage locations of batch crawls, or experiments, or a " +
					"crawl of several nodes with --crawl")
			}
			shown, late, err := contentOf(cmd.Context(), args)
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			for _, name := range late {
				log.Warn("the disk did not answer: assuming that this is a crawl's folder", "folder", name)
			}
			if c.crawl != "" {
				src, err := c.source(log)
				if err != nil {
					return err
				}
				shown.Crawls = append(shown.Crawls, ui.Crawl{Name: c.crawl, Cluster: src, Location: " of kumo serve"})
			} else if len(c.join) > 0 || c.nats != "" || c.secretFile != "" {
				return usagef("--join, --nats and --secret-file need the name of a crawl: give --crawl")
			}
			if startIn != "" {
				ctx, end := context.WithCancel(cmd.Context())
				wait, err := shown.allowStart(ctx, startIn, log)
				defer func() { end(); wait() }()
				if err != nil {
					return err
				}
			}
			page, err := u.listen()
			if err != nil {
				return err
			}
			if page == nil {
				return usagef("--listen is empty: give an address, such as --listen=%s", defaultUI)
			}
			defer page.close()
			return page.serve(cmd.Context(), log, shown)
		}}
	u.bind(cmd.Flags(), "listen")
	l := cmd.Flags().Lookup("listen")
	l.Usage, l.DefValue, l.NoOptDefVal = "serve at `ADDR`; kumo open opens it", defaultUI, ""
	u.Addr = defaultUI
	cmd.Flags().StringVar(&startIn, "allow-start", "", "let users of the page start crawls, in folders below `DIR`, and "+
		"schedule visits")
	c.bind(cmd.Flags(), joinUsage)
	cmd.Flags().Lookup("crawl").Usage = "also show a crawl of several nodes, by its `NAME`; this " +
		"machine need not run a node"
	cmd.Flags().SortFlags = false
	return cmd
}
