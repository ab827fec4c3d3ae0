// Package links exports the link graph of a crawl as two files, nodes.tsv and edges.tsv.
//
//	nodes.tsv  a line per URL with an answer, except robots.txt, in URL order: its number, from 0, and the URL
//	edges.tsv  a line per pair of page and link target, sorted, without duplicates: the two numbers
//
// An edge is a link that a user can follow, a redirect, a frame or a canonical URL. Embedded resources and links from a
// page to itself are no edges. Links to URLs that the crawl does not have are omitted. The numbers are resolved on
// disk, by sorting the links by target.
package links

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/extsort"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/parse"
)

// The files.
const (
	Nodes = "nodes.tsv"
	Edges = "edges.tsv"
)

const sortMemory = 32 << 20

var (
	_ export.Preparer        = (*Exporter)(nil)
	_ export.ArchiveExporter = (*Exporter)(nil)
)

// An Exporter writes the graph.
type Exporter struct {
	canon   weburl.Rules
	temp    string
	archive *captures.Archive
	nodes   *target.File
	edges   *target.File
	links   *extsort.Sorter // links by target, with the number of their page
	pairs   *extsort.Sorter
	count   uint64 // number of nodes
	outside int64  // links to URLs that are not exported
	report  export.Report
}

// New returns an exporter into a folder. canon are the crawl's rules for URLs, and temp is the folder for temporary
// files of sorting.
func New(ctx context.Context, to *target.Folder, canon weburl.Rules, temp string) (_ *Exporter, err error) {
	err = to.DeclareFiles(ctx, func(add func(string) error) error { return errors.Join(add(Nodes), add(Edges)) })
	if err != nil {
		return nil, err
	}
	e := &Exporter{canon: canon}
	if e.temp, err = os.MkdirTemp(temp, "kumo-links-"); err != nil {
		return nil, err
	}
	e.links = extsort.New(extsort.Config{Dir: filepath.Join(e.temp, "links"), Memory: sortMemory})
	e.pairs = extsort.New(extsort.Config{Dir: filepath.Join(e.temp, "pairs"), Memory: sortMemory})
	var failed [2]error
	e.nodes, failed[0] = to.Create(Nodes)
	e.edges, failed[1] = to.Create(Edges)
	if err := errors.Join(failed[:]...); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close discards unfinished files.
func (e *Exporter) Close() error {
	return errors.Join(e.nodes.Abort(), e.edges.Abort(), e.links.Close(), e.pairs.Close(), os.RemoveAll(e.temp))
}

// SetArchive sets the crawl's records.
func (e *Exporter) SetArchive(a *captures.Archive) { e.archive = a }

// prepared is a page and its link targets.
type prepared struct {
	*row.Row
	to []string
}

// Prepare returns a function that finds the links of pages.
func (e *Exporter) Prepare() export.PrepareFunc {
	reader := row.NewReader(false)
	return func(p *export.Page) (any, error) {
		r, err := reader.Read(p)
		if err != nil {
			return nil, err
		}
		made := prepared{Row: r}
		for i := range reader.Page.Links {
			if to := e.linkTarget(&reader.Page.Links[i]); to != "" && to != p.URL {
				made.to = append(made.to, to)
			}
		}
		return made, nil
	}
}

// linkTarget returns the target of a link as the crawl writes it; "" if the link is no edge.
func (e *Exporter) linkTarget(l *page.Link) string {
	if l.Kind.Embed() {
		return ""
	}
	u, err := weburl.Parse(l.URL)
	if err != nil {
		return ""
	}
	return e.canon.Apply(u.Canonical()).String()
}

// Write numbers a page and adds its links.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	if row.IsRobotsTxt(p.URL) {
		return nil
	}
	r := p.Prepared.(prepared)
	e.report.Add(p, parse.IsHTML(p.Type), r.Truncated != "", r.Unreadable)
	from := binary.BigEndian.AppendUint64(nil, e.count)
	for _, to := range r.to {
		if err := e.links.Add(0, []byte(to), from); err != nil {
			return err
		}
	}
	line := append(strconv.AppendUint(nil, e.count, 10), '\t')
	line = append(append(line, p.URL...), '\n')
	e.count++
	_, err := e.nodes.Write(line)
	return err
}

// Finish resolves the numbers of link targets, and writes the edges.
func (e *Exporter) Finish(ctx context.Context, r *export.Report) error {
	if err := e.resolveTargets(ctx); err != nil {
		return err
	}
	if err := e.writeEdges(ctx); err != nil {
		return err
	}
	r.Merge(&e.report)
	if e.outside > 0 {
		r.Notes = append(r.Notes, stats.Count(e.outside, "links")+" omitted: their targets are not exported")
	}
	return errors.Join(e.nodes.Commit(), e.edges.Commit())
}

// resolveTargets merges links with nodes, both in URL order, to get the numbers of link targets.
func (e *Exporter) resolveTargets(ctx context.Context) (err error) {
	sorted, err := e.links.Sorted(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	to, from, err := sorted.Next()
	number := uint64(0)
	failed := e.archive.Each(ctx, func(c *captures.Capture) error {
		if row.IsRobotsTxt(c.URL) {
			return nil
		}
		for err == nil && string(to) < c.URL {
			e.outside++
			to, from, err = sorted.Next()
		}
		for err == nil && string(to) == c.URL {
			if err := e.pairs.Add(0, binary.BigEndian.AppendUint64(from, number), nil); err != nil {
				return err
			}
			to, from, err = sorted.Next()
		}
		number++
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	for ; failed == nil && err == nil; _, _, err = sorted.Next() {
		e.outside++
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(failed, err)
}

// writeEdges writes each pair once.
func (e *Exporter) writeEdges(ctx context.Context) error {
	var line []byte
	return e.pairs.EachKey(ctx, func(pair, _ []byte) error {
		line = append(strconv.AppendUint(line[:0], binary.BigEndian.Uint64(pair), 10), '\t')
		line = append(strconv.AppendUint(line, binary.BigEndian.Uint64(pair[8:]), 10), '\n')
		_, err := e.edges.Write(line)
		return err
	})
}
