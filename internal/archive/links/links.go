// Package links reports the links between the pages of a crawl, and finds broken links, redirect chains, redirect loops
// and orphans. It reads only the files in the crawl's folder.
//
// The outcomes of URLs come from crawl.log, which has every visit with its status, and from skipped.jsonl. Redirect
// targets come from pages.jsonl, or from the WARC files if pages.jsonl does not exist. Earlier checks of external links
// come from [ExternalName]. The links of each page come from the metadata records of the WARC files. The files' indexes
// allow skipping the response records before them.
//
// Memory holds some hundred bytes for each URL that failed or redirects, up to a limit, and nothing for other pages and
// for links. Results are sorted on disk: a [Query] collects them, and one pass over the files can answer several. A
// page's response record is read only for the anchor text of a reported link.
package links

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
)

// A Config configures a Finder.
type Config struct {
	Dir      string       // the crawl's folder
	Disk     vfs.FS       // default vfs.OS
	Temp     string       // folder for temporary files of sorting; default the system's
	Canon    weburl.Rules // the crawl's rules for URLs
	Progress func(Progress)
	Outcomes int // limit of URLs that failed or redirect; default 4 million
}

// A Progress is the progress of a step.
type Progress struct {
	Step        string
	Done, Total int64
}

// A Link is a link with the outcome of its target.
type Link struct {
	URL    string `json:"url"`              // target
	Status int    `json:"status,omitempty"` // of the response after redirects; 0 if there is none
	// Error is why there is no usable response: "dns", "timeout", "loop", ... If the URL was not fetched, it is the
	// rule that excluded it.
	Error     string   `json:"error,omitempty"`
	Redirects []string `json:"redirects,omitempty"` // targets of the redirects, in order
	From      string   `json:"from"`
	Kind      string   `json:"kind"`           // a, img, redirect, ...
	Text      string   `json:"text,omitempty"` // anchor text, if the page's record exists
}

// A Finder reads the files of a crawl. Close removes its temporary files.
type Finder struct {
	cfg   Config
	known *outcomes
	temp  string
	notes []string
}

// Open reads the outcomes of the crawl's URLs.
func Open(ctx context.Context, cfg Config) (*Finder, error) {
	if cfg.Disk == nil {
		cfg.Disk = vfs.OS
	}
	if cfg.Progress == nil {
		cfg.Progress = func(Progress) {}
	}
	cfg.Outcomes = cmp.Or(cfg.Outcomes, 4<<20)
	temp, err := os.MkdirTemp(cfg.Temp, "kumo-links-")
	if err != nil {
		return nil, err
	}
	f := &Finder{cfg: cfg, temp: temp, known: newOutcomes(cfg.Outcomes)}
	for _, step := range []func(context.Context) error{f.readSkips, f.readLog, f.readPages, f.readExternal} {
		if err := errors.Join(ctx.Err(), step(ctx)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if f.known.overflowed {
		f.addNote(fmt.Sprintf("more than %d URLs failed or redirect: links to the others are not reported", cfg.Outcomes))
	}
	return f, nil
}

// Close removes the temporary files.
func (f *Finder) Close() error { return os.RemoveAll(f.temp) }

// Notes returns why results are incomplete, without duplicates.
func (f *Finder) Notes() []string { return f.notes }

func (f *Finder) addNote(text string) {
	if !slices.Contains(f.notes, text) {
		f.notes = append(f.notes, text)
	}
}

func (f *Finder) path(name string) string { return filepath.Join(f.cfg.Dir, filepath.FromSlash(name)) }

// Broken calls tell with the links whose target fails, does not respond, or is a redirect loop, grouped by target.
func (f *Finder) Broken(ctx context.Context, tell func(*Link) error) error {
	return f.Run(ctx, f.BrokenQuery(tell))
}

// BrokenQuery returns the query of [Finder.Broken].
func (f *Finder) BrokenQuery(tell func(*Link) error) *Query {
	return f.linkQuery("broken", func(l *outlink) bool { return f.known.end(l.to).broken() }, tell)
}

// To calls tell with the links to a URL, including those through redirects.
func (f *Finder) To(ctx context.Context, url string, tell func(*Link) error) error {
	wanted := map[string]bool{} // the requested URLs
	return f.Run(ctx, f.linkQuery("to", func(l *outlink) bool {
		if l.to == url {
			return true
		}
		if _, moved := f.known.at(l.to); !moved {
			return false
		}
		is, asked := wanted[l.to]
		if !asked && len(wanted) < f.cfg.Outcomes {
			is = f.known.end(l.to).passes(url)
			wanted[l.to] = is
		}
		return is
	}, tell))
}

// From calls tell with the links of a page, in the order of its last visit.
func (f *Finder) From(ctx context.Context, url string, tell func(*Link) error) error {
	var all []Link
	err := f.eachPage(ctx, func(p *pageLinks) error {
		if p.url != url {
			return nil
		}
		all = all[:0]
		texts := f.texts(p)
		for l := range p.links() {
			all = append(all, Link{URL: f.canonical(&l), From: url, Kind: l.kind, Text: l.anchorText(texts)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	what, err := f.resolveOutcomes(ctx, all)
	if err != nil {
		return err
	}
	for i := range all {
		l := &all[i]
		if f.known.end(l.URL).fill(l); l.Status == 0 && l.Error == "" {
			last := l.URL
			if n := len(l.Redirects); n > 0 {
				last = l.Redirects[n-1]
			}
			l.Status, l.Error = what[last].status, what[last].reason
		}
		if err := tell(l); err != nil {
			return err
		}
	}
	return nil
}

// linkQuery returns a query that calls tell with the wanted links, sorted by target and page.
func (f *Finder) linkQuery(name string, wanted func(*outlink) bool, tell func(*Link) error) *Query {
	q := f.newQuery(name, nil)
	var key []byte
	q.visit = func(p *pageLinks, l *outlink) error {
		if !wanted(l) {
			return nil
		}
		if p.texts == nil {
			p.texts = f.texts(p)
		}
		key = append(append(append(append(append(key[:0], l.to...), 0), p.url...), 0), l.kind...)
		return q.sorter.Add(0, key, []byte(l.anchorText(p.texts)))
	}
	q.finish = func(ctx context.Context) error {
		return q.sorter.EachKey(ctx, func(key, text []byte) error { // once, even if several visits or elements have it
			part := strings.SplitN(string(key), "\x00", 3)
			l := &Link{URL: part[0], From: part[1], Kind: part[2], Text: string(text)}
			f.known.end(l.URL).fill(l)
			return tell(l)
		})
	}
	return q
}

// canonical returns the target of a link in the crawl's canonical form, except for redirects.
func (f *Finder) canonical(l *outlink) string {
	if f.cfg.Canon == 0 || l.kind == page.Redirect.String() {
		return l.raw
	}
	u, err := weburl.Parse(l.raw)
	if err != nil {
		return l.raw
	}
	return f.cfg.Canon.Apply(u).String()
}

// jsonLine writes v as a line of JSON.
func jsonLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
