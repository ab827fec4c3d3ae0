// Package site exports a crawl as files that a browser opens without a server. Each page and each embedded resource is
// a file, and links between them are relative.
//
// A page that the crawl has rendered is written as the document after its scripts, which do not run again.
//
// A page has the bytes that its server sent, except for its references. References to URLs in the crawl point to their
// files, also through redirects. All other references and the targets of forms are absolute. Properties of a page that
// its HTTP header fields declared are written into the page ([parse.Parser.Rewrite]). A URL that redirects has a small
// page that leads to the target. Errors and robots.txt have no files.
//
// A file's name depends on its URL, its media type (package names) and the other files. The exporter therefore needs
// all URLs before it writes the first file. A URL costs about 20 bytes of memory, and a redirect about 100 bytes more.
package site

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/names"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/extsort"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// A Config configures the export.
type Config struct {
	Canon weburl.Rules // the crawl's rules for URLs
	Start []string     // the crawl's seeds
	Temp  string       // folder for temporary files of sorting; default the system's
}

var _ export.Planner = (*Exporter)(nil)

// An Exporter writes the site.
type Exporter struct {
	cfg    Config
	to     *target.Folder
	temp   string
	names  *extsort.Sorter
	parser *parse.Parser
	buf    []byte

	seed  maphash.Seed
	files map[uint64]uint8 // by hash of the URL: twice the number of the media type, plus 1 if the name has a hash
	moved map[uint64]move

	report       export.Report
	externalRefs int64 // references to embedded resources that the crawl does not have
}

// A move is a redirect.
type move struct {
	to      string
	hasPage bool // the redirect has a page of its own
}

// New returns an exporter into a folder.
func New(to *target.Folder, cfg Config) (*Exporter, error) {
	temp, err := os.MkdirTemp(cfg.Temp, "kumo-site-")
	if err != nil {
		return nil, err
	}
	return &Exporter{cfg: cfg, to: to, temp: temp, parser: parse.New(parse.Config{}),
		names: extsort.New(extsort.Config{Dir: filepath.Join(temp, "sort"), Memory: 32 << 20}),
		seed:  maphash.MakeSeed(), files: map[uint64]uint8{}, moved: map[uint64]move{}}, nil
}

// Close removes temporary files.
func (e *Exporter) Close() error { return errors.Join(e.names.Close(), os.RemoveAll(e.temp)) }

func (e *Exporter) hash(url string) uint64 { return maphash.String(e.seed, url) }

// Plan records a URL and requests the name of its file.
func (e *Exporter) Plan(_ context.Context, p *export.Page) error {
	u, err := weburl.Parse(p.URL)
	if err != nil || !u.IsHTTP() || u.Path() == "/robots.txt" {
		return nil //nolint:nilerr // a browser could not ask for it
	}
	switch {
	case captures.Redirects(p.Status):
		resp, err := p.ReadResponse()
		if export.IsUnreadable(err) {
			return nil // Write counts it
		}
		if err != nil {
			return err
		}
		to, err := u.Resolve(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" || !to.IsHTTP() {
			return nil //nolint:nilerr // it leads nowhere
		}
		e.moved[e.hash(p.URL)] = move{to: to.String()}
		return e.requestName(u, rankRedirect, "text/html")
	case hasFile(p.Status):
		mediaType, err := e.typeOf(p)
		if err != nil {
			return err
		}
		return e.requestName(u, rankContent, mediaType)
	}
	return nil
}

// Priority of requests for the same name: content before redirects.
const (
	rankContent  = '0'
	rankRedirect = '1'
)

// requestName requests a name for a URL's file.
func (e *Exporter) requestName(u weburl.URL, rank byte, mediaType string) error {
	key := names.RequestKey(names.Of(u, mediaType), string(rank)+u.String())
	return e.names.Add(0, key, []byte{names.TypeNumbers[mediaType]})
}

// hasFile reports whether a response with the status is written as a file.
func hasFile(status int) bool {
	return status/100 == 2 && status != http.StatusNoContent && status != http.StatusResetContent
}

// typeOf returns the known media type of a page; if none is declared, it is detected from the body.
func (e *Exporter) typeOf(p *export.Page) (string, error) {
	if p.Type != "" {
		return names.Type(p.Type), nil
	}
	resp, err := p.ReadResponse()
	if export.IsUnreadable(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return names.Type(mime.Sniff(resp.Body, "", false).Essence()), nil
}

// FinishPlan assigns the names.
func (e *Exporter) FinishPlan(ctx context.Context) error {
	return e.to.DeclareFiles(ctx, func(add func(string) error) error {
		if err := add(names.Start); err != nil {
			return err
		}
		return names.EachRequest(ctx, e.names, func(who, mediaType string, apart bool) error {
			return e.assignName(who[0], who[1:], mediaType[0], apart, add)
		})
	})
}

// assignName assigns a file its name, made unique if necessary. A redirect whose name is taken has no page.
func (e *Exporter) assignName(rank byte, url string, mediaType uint8, apart bool, add func(string) error) error {
	h := e.hash(url)
	if rank == rankRedirect {
		m := e.moved[h]
		if m.hasPage = !apart; apart {
			return nil
		}
		e.moved[h] = m
		return add(e.moveName(url))
	}
	entry := mediaType << 1
	if apart {
		entry |= 1
	}
	e.files[h] = entry
	return add(e.fileName(url, entry))
}

// fileName returns the name of a URL's file.
func (e *Exporter) fileName(url string, entry uint8) string {
	u, err := weburl.Parse(url)
	if err != nil {
		return "" // Plan has parsed it before
	}
	name := names.Of(u, names.Types[entry>>1])
	if entry&1 != 0 {
		name = names.WithHash(name, url)
	}
	return name
}

// moveName returns the name of a redirect's page.
func (e *Exporter) moveName(url string) string {
	return e.fileName(url, names.TypeNumbers["text/html"]<<1)
}

const maxHops = 20 // redirects in a row

// resolve follows redirects from a URL, and returns the name of the file with the content; "" if there is none.
func (e *Exporter) resolve(u weburl.URL) string {
	u = u.Canonical()
	for _, url := range []string{e.cfg.Canon.Apply(u).String(), u.String()} {
		for range maxHops {
			h := e.hash(url)
			if entry, is := e.files[h]; is {
				return e.fileName(url, entry)
			}
			m, is := e.moved[h]
			if !is {
				break
			}
			to, err := weburl.Parse(m.to)
			if err != nil {
				break
			}
			url = to.Canonical().String()
		}
	}
	return ""
}

// Write writes the file of a URL.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	h := e.hash(p.URL)
	if m, is := e.moved[h]; is {
		if !m.hasPage {
			return nil
		}
		e.report.URLs++
		return e.writeMove(p.URL, m.to)
	}
	entry, is := e.files[h]
	if !is {
		return nil
	}
	resp, err := p.ReadAnswer()
	if export.IsUnreadable(err) {
		e.report.Unreadable++
		e.report.AddNote(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	e.report.URLs++
	if resp.Truncated != page.Whole {
		e.report.Cutoff++
	}
	name, mediaType := e.fileName(p.URL, entry), names.Types[entry>>1]
	if parse.IsHTML(mediaType) {
		e.report.Pages++
	}
	if !parse.CanRewrite(mediaType) {
		return e.to.Put(name, resp.Body)
	}
	doc := resp.Shown
	if !parse.IsHTML(mediaType) {
		doc = resp.Response
	}
	e.buf, err = e.parser.Rewrite(e.buf[:0], doc, mediaType, e.referFunc(name))
	if err != nil {
		e.report.AddNote(fmt.Sprintf("%s is unchanged: %v", p.URL, err))
	}
	if doc != resp.Response {
		e.buf = parse.InsertInHead(e.buf, noScript)
	}
	return e.to.Put(name, e.buf)
}

// noScript keeps the scripts of a rendered page from running: without their server they would remove what they have
// shown.
const noScript = `<meta http-equiv="Content-Security-Policy" content="script-src 'none'">`

// referFunc returns a function that replaces the references of a file.
func (e *Exporter) referFunc(from string) parse.Refer {
	return func(to weburl.URL, kind page.Kind) (string, bool) {
		url := to.String()
		if kind == page.Form || kind == page.Canonical {
			return url, true
		}
		name := e.resolve(to)
		if name == "" {
			if kind.Embed() {
				e.externalRefs++
			}
			return url, true
		}
		if i := strings.IndexByte(url, '#'); i >= 0 {
			return names.Relative(from, name) + url[i:], true
		}
		return names.Relative(from, name), true
	}
}

// writeMove writes the page of a redirect. It forwards automatically only to files of the export.
func (e *Exporter) writeMove(url, to string) error {
	name := e.moveName(url)
	u, err := weburl.Parse(to)
	if err != nil {
		return err
	}
	return e.to.Put(name, movePage(to, e.linkTo(name, u), e.resolve(u) != ""))
}

// linkTo returns the reference from a file to a URL.
func (e *Exporter) linkTo(from string, u weburl.URL) string {
	to, _ := e.referFunc(from)(u, page.Anchor)
	return to
}

const pageHead = "<!doctype html>\n<meta charset=\"utf-8\">\n"

func linkLine(href, text string) string {
	return `<p><a href="` + html.EscapeString(href) + `">` + html.EscapeString(text) + "</a>\n"
}

func movePage(url, href string, goesOn bool) []byte {
	refresh := ""
	if goesOn {
		to := strings.ReplaceAll(href, "'", "%27")
		refresh = `<meta http-equiv="refresh" content="0; url=` + html.EscapeString(to) + "\">\n"
	}
	return []byte(pageHead + refresh + "<title>" + html.EscapeString(url) + "</title>\n" + linkLine(href, url))
}

const maxStartLinks = 1000 // links on the start page

// Finish writes the start page.
func (e *Exporter) Finish(_ context.Context, r *export.Report) error {
	var links []byte
	found, only := 0, ""
	for _, url := range e.cfg.Start {
		u, err := weburl.Parse(url)
		if err != nil {
			continue
		}
		name := e.resolve(u)
		if name == "" || found == maxStartLinks {
			continue
		}
		found++
		only = url
		links = append(links, linkLine(e.linkTo(names.Start, u), url)...)
	}
	r.Merge(&e.report)
	if e.externalRefs > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d references to images, styles and other embedded resources lead to the "+
			"web: the crawl does not have them", e.externalRefs))
	}
	if found == 0 {
		return e.to.Remove(names.Start)
	}
	r.Open = names.Start
	if found == 1 {
		u, err := weburl.Parse(only)
		if err != nil {
			return err
		}
		return e.to.Put(names.Start, movePage(only, e.linkTo(names.Start, u), true))
	}
	return e.to.Put(names.Start, append([]byte(pageHead+"<title>Where to begin</title>\n"), links...))
}
