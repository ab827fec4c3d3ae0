package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kumo/internal/app/folder"
	"kumo/internal/app/setting"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/settings"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/seeds"
)

const mirrorLong = `Copy a site, or a part of it, into the folder DIR (default: mirrors/HOST), as files that open
without a server.

kumo mirror crawls the URLs in and below the URL's folder (--scope), and the images, styles and
other resources that the pages need, from any host, as politely as kumo crawl. Then it writes files
like kumo export --to site, and prints which one to open. A page that was rendered (--render) is
written as its document after scripts, which do not run again.

The same command updates the copy: pages requested more than an hour ago (--recrawl) are requested
again, new pages are added, and removed pages are deleted. After Ctrl-C, the same command resumes.

The crawl itself is in DIR/.kumo/crawl, with WARC files; kumo explain, kumo links and other commands
can read it.`

// mirrorDefaults are the defaults of settings for a mirror.
var mirrorDefaults = []settings.Setting{
	{Key: "embeds", Values: []string{"true"}}, {Key: "scope", Values: []string{"prefix"}},
	{Key: "recrawl", Values: []string{"1h,1h,1h"}}}

func mirrorCommand() *cobra.Command {
	o := &options{}
	all := crawlFlags(o)
	cmd := &cobra.Command{Use: "mirror [flags] URL [DIR]",
		Short: "Copy a site into files that open without a server",
		Long:  mirrorLong,
		Example: "  kumo mirror https://example.com/docs/\n  kumo mirror --contact https://me.example/bot " +
			"https://example.com/ example\n  kumo mirror mirrors/example.com    # brings it up to date",
		Args: between(1, 2, "give a URL and, optionally, a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.mirror(cmd.Context(), cmd.OutOrStdout(), all, args)
		}}
	borrow(cmd.Flags(), all, setting.Keys(func(s *setting.Setting) bool { return s.Mirror }))
	cmd.Flags().SortFlags = false
	return withSettingsHelp(cmd)
}

// mirror crawls and exports. It returns the error of the crawl after the files are written.
func (o *options) mirror(ctx context.Context, out io.Writer, all *pflag.FlagSet, args []string) error {
	args, dir, err := mirrorPlace(args)
	if err != nil {
		return err
	}
	if err := o.resolveMirror(ctx, all, args, dir); err != nil {
		return err
	}
	free, err := target.Open(dir, "site", "") // refuses a folder that is not a mirror
	if err != nil {
		return err
	}
	if err := free.Close(); err != nil {
		return err
	}
	o.noReport = true
	crawled := o.crawl(ctx, out)
	if crawled != nil && !errors.Is(crawled, policy.ErrLimit) && !errors.Is(crawled, errGaveUp) {
		return crawled
	}
	x := &exportOptions{form: "site", quiet: o.Quiet}
	r, err := x.run(ctx, []string{o.Job.Dir}, dir)
	if err != nil {
		return errors.Join(err, crawled)
	}
	if !o.Quiet {
		printExport(out, r, dir)
	}
	return crawled
}

// mirrorPlace returns the URL to crawl and the folder of a mirror from its arguments: a URL and a folder, or only one
// of them if the mirror exists.
func mirrorPlace(args []string) (urls []string, dir string, err error) {
	if len(args) == 1 {
		if isMirror(args[0]) {
			return nil, args[0], nil
		}
		parsed, err := seeds.Parse(args)
		if err != nil {
			return nil, "", err
		}
		return args, filepath.Join("mirrors", weburl.FileNamePart(parsed[0].Hostname())), nil
	}
	return args[:1], args[1], checkFolder("DIR", args[1])
}

func mirrorCrawl(dir string) string { return filepath.Join(dir, target.PrivateDir, "crawl") }

func isMirror(dir string) bool {
	_, err := os.Stat(mirrorCrawl(dir))
	return err == nil
}

func (o *options) resolveMirror(ctx context.Context, all *pflag.FlagSet, args []string, dir string) error {
	o.Out, o.mirrorDir = mirrorCrawl(dir), dir
	saved, err := folder.ReadSettings(o.Out)
	if err != nil {
		return err
	}
	if len(saved) == 0 {
		for _, s := range mirrorDefaults {
			if err := setFlag(all, s); err != nil {
				return err
			}
		}
	}
	o.Due = true
	return o.resolve(ctx, all, args)
}
