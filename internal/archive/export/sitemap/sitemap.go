// Package sitemap exports sitemaps in the format of sitemaps.org. The sitemaps of an origin are in one folder,
// SCHEME/HOST/sitemap.xml, to be copied to the root of the site.
//
// A sitemap lists HTML pages with status 200 that do not ask to be excluded from indexes and name no other page as
// canonical. The field lastmod is the server's Last-Modified. A file has at most 50,000 URLs and 50 MiB. If an origin
// has more, sitemap.xml is an index of the files sitemap-00001.xml and so on.
package sitemap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/names"
	"kumo/internal/archive/export/row"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/state/store"
)

// Limits are the limits of a file.
type Limits struct{ URLs, Bytes int }

// Protocol has the protocol's limits.
var Protocol = Limits{50_000, 50 << 20}

const (
	head  = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	space = ` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	open  = head + "<urlset" + space
	shut  = "</urlset>\n"
	first = head + "<sitemapindex" + space
	last  = "</sitemapindex>\n"
)

var _ export.Preparer = (*Exporter)(nil)

// An Exporter writes sitemaps.
type Exporter struct {
	to     *target.Folder
	limits Limits
	temp   string
	list   *os.File // entries, one per line, each after its origin
	w      *bufio.Writer
	report export.Report
}

// New returns an exporter into a folder; temp is the folder for temporary files.
func New(to *target.Folder, temp string, limits Limits) (_ *Exporter, err error) {
	e := &Exporter{to: to, limits: limits}
	if e.temp, err = os.MkdirTemp(temp, "kumo-sitemap-"); err != nil {
		return nil, err
	}
	if e.list, err = os.Create(e.name()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(e.temp))
	}
	e.w = bufio.NewWriterSize(e.list, 64<<10)
	return e, nil
}

func (e *Exporter) name() string { return filepath.Join(e.temp, "entries") }

// Close removes temporary files.
func (e *Exporter) Close() error { return errors.Join(e.list.Close(), os.RemoveAll(e.temp)) }

// prepared is a page, with its entry if it has one.
type prepared struct {
	*row.Row
	entry string
}

// Prepare returns a function that builds entries.
func (e *Exporter) Prepare() export.PrepareFunc {
	reader := row.NewReader(false)
	return func(p *export.Page) (any, error) {
		r, err := reader.Read(p)
		if err != nil {
			return nil, err
		}
		made := prepared{Row: r}
		if r.Status == http.StatusOK && reader.HTML() && !r.NoIndex && (r.Canonical == "" || r.Canonical == r.URL) {
			made.entry = entry(r, reader.Answer.Header.Get("Last-Modified"))
		}
		return made, nil
	}
}

// entry returns a URL's entry in one line; "" if it cannot be in a sitemap.
func entry(r *row.Row, modified string) string {
	u, err := weburl.Parse(r.URL)
	if err != nil || !u.IsHTTP() || len(r.URL) > maxURL {
		return ""
	}
	text := "<url><loc>" + escape(r.URL) + "</loc>"
	if at, err := http.ParseTime(modified); err == nil && at.Year() >= 1990 && !at.After(r.Time) {
		text += "<lastmod>" + at.UTC().Format(time.RFC3339) + "</lastmod>"
	}
	return text + "</url>"
}

const maxURL = 2047 // bytes of a URL; the protocol requires less than 2,048

// escape returns a URL escaped for XML, with non-ASCII characters percent-encoded.
func escape(url string) string {
	var b strings.Builder
	for i := range len(url) {
		switch c := url[i]; {
		case c <= ' ' || c >= 0x7F:
			fmt.Fprintf(&b, "%%%02X", c)
		case strings.IndexByte(`&'"<>`, c) >= 0:
			fmt.Fprintf(&b, "&#%d;", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Write adds a page's entry to the list. Files can be divided only when all entries are known.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	r := p.Prepared.(prepared)
	if r.Unreadable != nil || r.entry != "" {
		e.report.Add(p, true, r.Truncated != "", r.Unreadable)
	}
	if r.entry == "" {
		return nil
	}
	scheme, _, _ := strings.Cut(r.URL, "://")
	_, err := fmt.Fprintf(e.w, "%s://%s\t%s\n", scheme, r.Host, r.entry)
	return err
}

// A group has the files of an origin, as their numbers of entries.
type group struct {
	origin string // "https://example.com"
	files  []int
}

// Finish divides the entries into files.
func (e *Exporter) Finish(ctx context.Context, r *export.Report) error {
	if err := e.w.Flush(); err != nil {
		return err
	}
	groups, err := e.groups()
	if err != nil {
		return err
	}
	err = e.to.DeclareFiles(ctx, func(add func(string) error) error {
		for _, g := range groups {
			for n := range g.all() {
				if err := add(g.name(n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := e.write(ctx, groups); err != nil {
		return err
	}
	r.Merge(&e.report)
	if len(groups) == 1 {
		r.Open = groups[0].name(0)
	}
	return nil
}

// groups determines the files. The entries of an origin are adjacent, because its URLs are.
func (e *Exporter) groups() (all []group, err error) {
	size := 0
	_, err = store.EachLineOf(vfs.OS, e.name(), func(line []byte, _ int64) error {
		origin, entry, _ := strings.Cut(string(line), "\t")
		if len(all) == 0 || all[len(all)-1].origin != origin {
			all = append(all, group{origin: origin})
			size = 0
		}
		g := &all[len(all)-1]
		n := len(g.files)
		if size == 0 || g.files[n-1] == e.limits.URLs || size+len(entry)+1 > e.limits.Bytes {
			g.files = append(g.files, 0)
			n, size = n+1, len(open)+len(shut)
		}
		g.files[n-1]++
		size += len(entry) + 1
		return nil
	})
	return all, err
}

// all returns the number of files, with the index.
func (g *group) all() int {
	if len(g.files) == 1 {
		return 1
	}
	return len(g.files) + 1
}

// name returns the name of the n-th file; the first is the index if there are several.
func (g *group) name(n int) string {
	scheme, host, _ := strings.Cut(g.origin, "://")
	if u, err := weburl.Parse(g.origin + "/"); err == nil {
		host = names.Host(u)
	}
	return scheme + "/" + host + "/" + g.file(n)
}

func (g *group) file(n int) string {
	if n == 0 {
		return "sitemap.xml"
	}
	return fmt.Sprintf("sitemap-%05d.xml", n)
}

// write writes the files.
func (e *Exporter) write(ctx context.Context, groups []group) error {
	in, err := os.Open(e.name())
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewReaderSize(in, 64<<10)
	for _, g := range groups {
		begin := 0 // the number of the first file with entries
		if len(g.files) > 1 {
			begin = 1
			if err := e.put(g.name(0), first, last, func(w io.Writer) error { return g.index(w) }); err != nil {
				return err
			}
		}
		for n, entries := range g.files {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := e.put(g.name(begin+n), open, shut, func(w io.Writer) error { return copyEntries(w, lines, entries) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// put makes a file.
func (e *Exporter) put(name, begin, end string, fill func(io.Writer) error) error {
	out, err := e.to.Create(name)
	if err != nil {
		return err
	}
	_, err = out.WriteString(begin)
	if err == nil {
		err = fill(out)
	}
	if err == nil {
		_, err = out.WriteString(end)
	}
	if err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Commit()
}

func (g *group) index(w io.Writer) error {
	for n := range g.files {
		if _, err := fmt.Fprintf(w, "<sitemap><loc>%s/%s</loc></sitemap>\n", escape(g.origin), g.file(n+1)); err != nil {
			return err
		}
	}
	return nil
}

func copyEntries(w io.Writer, lines *bufio.Reader, n int) error {
	for range n {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		_, entry, _ := strings.Cut(line, "\t")
		if _, err := io.WriteString(w, entry); err != nil {
			return err
		}
	}
	return nil
}
