package audit

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"kumo/internal/archive/links"
	"kumo/internal/base/page"
)

// readLinks adds the rows of the tables about links, in one pass over the WARC files.
func (a *auditor) readLinks(ctx context.Context) error {
	f := a.Finder
	queries := []*links.Query{f.BrokenQuery(a.addBroken), f.RedirectQuery(a.addChain)}
	if f.HasRecords() {
		queries = append(queries, f.OrphanQuery(a.addOrphan), f.EachLink(a.addLink), f.InlinkQuery(a.addInlinks))
		a.hasInlinks = true
	} else {
		a.summary.Notes = append(a.summary.Notes,
			"orphans, insecure links and sitemaps are not checked, inlinks not counted: the crawl has no WARC files here")
	}
	return f.Run(ctx, queries...)
}

// numbered returns a key that keeps the order in which rows are added to a table.
func (a *auditor) numbered() string {
	a.added++
	return fmt.Sprintf("%016x", a.added)
}

func (a *auditor) addBroken(l *links.Link) error {
	return a.addRow(brokenLinks, a.numbered(), word(l.Status, l.Error), l.URL, strconv.Itoa(l.Status), l.Error,
		strings.Join(l.Redirects, " "), l.From, l.Kind, l.Text)
}

func (a *auditor) addChain(c *links.Chain) error {
	problem := "one step"
	switch {
	case c.Broken:
		problem = word(c.Status, c.Error)
	case c.Redirects > 1:
		problem = "several steps"
	}
	var steps []string
	for _, s := range c.Steps {
		steps = append(steps, strconv.Itoa(s.Status), s.To)
	}
	return a.addRow(redirects, a.numbered(), problem, c.URL, strconv.FormatInt(c.Links, 10), strconv.Itoa(c.Redirects),
		c.End, strconv.Itoa(c.Status), c.Error, strconv.FormatBool(c.Broken), strings.Join(steps, " "))
}

func (a *auditor) addOrphan(o *links.Orphan) error {
	return a.addRow(orphans, a.numbered(), word(o.Status, o.Error), o.URL, strconv.Itoa(o.Status), o.Error,
		strings.Join(o.Redirects, " "), o.Sitemap)
}

// addLink adds a link to the tables of insecure links and of sitemaps.
func (a *auditor) addLink(from, to, kind string) error {
	if strings.HasPrefix(from, "https://") && strings.HasPrefix(to, "http://") {
		problem := "link"
		if k, known := page.ParseKind(kind); known && k.Embed() {
			problem = "embed"
		}
		if err := a.addRow(insecure, from+"\x00"+to, problem, from, to, kind); err != nil {
			return err
		}
	}
	if kind != page.Listed.String() {
		return nil
	}
	problem, status, leadsTo := a.target(to)
	if problem == "" {
		return nil
	}
	return a.addRow(sitemaps, to, problem, problem, to, status, leadsTo, from)
}

// target returns the problem of a URL that failed or redirects; "" if it has none.
func (a *auditor) target(url string) (problem, status, leadsTo string) {
	t := a.Finder.Follow(url)
	if n := len(t.Redirects); n > 0 {
		problem, leadsTo = "redirect", t.Redirects[n-1]
	}
	if t.Broken {
		return "error", word(t.Status, t.Error), leadsTo
	}
	return problem, "", leadsTo
}

// word returns an outcome in a word.
func word(status int, failure string) string { return cmp.Or(failure, strconv.Itoa(status)) }
