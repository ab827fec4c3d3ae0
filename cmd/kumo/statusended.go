package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/node"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/view/text"
)

// crawlsDir is the folder of crawls without --out.
const crawlsDir = "crawls"

// nodeFolders returns the folders of a crawl's nodes on this machine, if they are where kumo node creates them, and
// the newest report of all nodes in them; nil if there is none.
func nodeFolders(dir, crawl string) (all []string, last *stats.Report, err error) {
	more, err := filepath.Glob(filepath.Join(dir, crawl+"-*"))
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range append([]string{filepath.Join(dir, crawl)}, more...) {
		if !folder.At(dir, vfs.OS).IsNodes() {
			continue
		}
		r, err := node.ReadResults(vfs.OS, dir)
		if err != nil {
			return nil, nil, err
		}
		if r == nil || r.Crawl != crawl {
			continue
		}
		all = append(all, dir)
		if last == nil || r.Stopped.After(last.Stopped) {
			last = r
		}
	}
	return all, last, nil
}

// showEnded prints how a crawl ended whose nodes do not answer, from the nodes' folders on this machine. It reports
// whether there are any.
func (s *statusView) showEnded(crawl string) (found bool, err error) {
	all, last, err := nodeFolders(crawlsDir, crawl)
	if err != nil || last == nil {
		return false, err
	}
	if s.json {
		return true, text.JSON(s.out, last)
	}
	fmt.Fprintf(s.err, "kumo: no node of the crawl %q answers; this is the report of all nodes of %s\n", crawl,
		text.Time(last.Stopped))
	last.Print(s.out)
	fmt.Fprintf(s.out, "  %-9s %s\n", "results", strings.Join(all, " "))
	return true, nil
}

// printResults prints the report of all nodes, if dir is the folder of a node whose crawl has ended.
func printResults(b *strings.Builder, dir string) error {
	if !folder.At(dir, vfs.OS).IsNodes() {
		return nil
	}
	r, err := node.ReadResults(vfs.OS, dir)
	if err != nil || r == nil {
		return err
	}
	b.WriteString("\nall nodes, as of " + text.Time(r.Stopped) + "\n")
	r.Print(b)
	others, _, err := nodeFolders(filepath.Dir(filepath.Clean(dir)), r.Crawl)
	if others = slices.DeleteFunc(others, func(o string) bool { return o == filepath.Clean(dir) }); len(others) > 0 {
		fmt.Fprintf(b, "  %-9s also in %s\n", "results", strings.Join(others, " "))
	}
	return err
}
