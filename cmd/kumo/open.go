package main

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"kumo/internal/app/folder"
	"kumo/internal/base/advice"
)

const openLong = `Print the URL of a crawl's web page, with its token. Web pages are served by kumo crawl --ui, kumo
node --ui and kumo serve. On a terminal with a desktop, also open the URL in a browser. Everyone who
has that URL can read and control the crawl. The browser then keeps the token in a cookie. FOLDER is
the crawl's, or the first folder of kumo serve; --crawl names a crawl of several nodes.`

func openCommand() *cobra.Command {
	var dir, crawl string
	cmd := &cobra.Command{Use: "open [FOLDER]", Short: "Open a crawl's web page, and print its URL",
		Long: openLong, Example: "  kumo open crawls/example.com\n  kumo open --crawl news\n" +
			"  kumo open crawls/example.com | cat   # prints the URL only",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (dir == "") == (crawl == "") {
				return usagef("which crawl? name its folder, or with --crawl a crawl of several nodes")
			}
			find := findPage
			if crawl != "" {
				if err := checkCrawlName(crawl); err != nil {
					return err
				}
				find, dir = findClusterPage, crawl
			}
			n, at, err := find(dir)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if _, err := fmt.Fprintln(out, n.link()); err != nil {
				return err
			}
			if isTerminal(out) {
				if err := openBrowser(n.link(), at); err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "no browser could be started:", err)
				}
			}
			return nil
		}}
	cmd.Flags().StringVarP(&dir, "out", "o", "", "the crawl's `FOLDER`, instead of the argument")
	cmd.Flags().StringVar(&crawl, "crawl", "", "the `NAME` of a crawl of several nodes, served on this machine")
	return orArgument(cmd)
}

// findPage returns the record of the web page of a folder or storage location, and the folder that contains the record.
func findPage(dir string) (n uiRecord, at string, err error) {
	n, err = readUIRecord(dir)
	if err == nil && n.URL != "" {
		return n, dir, nil
	}
	if spare := userDir(dir); spare != "" {
		if other, failed := readUIRecord(spare); failed == nil && other.URL != "" {
			return other, spare, nil
		}
	}
	if err != nil {
		return n, "", err
	}
	return n, "", advice.With(
		fmt.Errorf("no web page of the crawl in %s is served", dir),
		fmt.Sprintf(
			"kumo crawl -o %s --ui (of a node: kumo node --ui) serves it while it crawls, kumo serve %[1]s at any time",
			dir,
		),
	)
}

// findClusterPage returns the record of a web page of a crawl of several nodes: that of kumo serve --crawl, or that of
// a node in its default folder.
func findClusterPage(crawl string) (n uiRecord, at string, err error) {
	dirs := []string{folder.DefaultDir(crawl)}
	if spare := userDir(clusterKey(crawl)); spare != "" {
		dirs = append([]string{spare}, dirs...)
	}
	more, err := filepath.Glob(folder.DefaultDir(crawl) + "-*") // a crawl's name contains no wildcards
	if err != nil {
		return n, "", err
	}
	for _, dir := range append(dirs, more...) {
		if n, err := readUIRecord(dir); err == nil && n.isServed() {
			return n, dir, nil
		}
	}
	return n, "", advice.With(
		fmt.Errorf("no web page of the crawl %s is served on this machine, in a usual folder", crawl),
		fmt.Sprintf("kumo node --crawl %s --ui and kumo serve --crawl %[1]s serve one; of a node with a folder elsewhere: "+
			"kumo open FOLDER", crawl),
	)
}

// openBrowser opens a URL in the user's browser, if there is one. Other users can see the arguments of programs, so it
// passes a private file that redirects to the URL.
func openBrowser(link, dir string) error {
	name := filepath.Join(dir, folder.OpenName)
	command := browserCommand(runtime.GOOS, os.Getenv, name)
	if command == nil {
		return nil
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil // no desktop
	}
	if err := writeOpenPage(name, link); err != nil {
		return err
	}
	return exec.Command(command[0], command[1:]...).Start()
}

func writeOpenPage(name, link string) error {
	return writePrivate(name, fmt.Appendf(nil, "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%[1]s\">"+
		"<a href=\"%[1]s\">kumo</a>\n", html.EscapeString(link)))
}

// browserCommand returns the command that opens a file in the browser; nil without a desktop.
func browserCommand(system string, env func(string) string, name string) []string {
	abs, err := filepath.Abs(name)
	switch {
	case err != nil:
		return nil
	case system == "darwin":
		return []string{"open", abs}
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", abs}
	case env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "":
		return nil
	}
	return []string{"xdg-open", abs}
}

// writePrivate replaces a file atomically. Only its owner can read it.
func writePrivate(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // creates it with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
