// Package site exports a crawl as files that a browser opens without a server. Each page and each embedded resource is
// a file, and links between them are relative.
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

// A Config says how pages are found.
type Config struct {
	Canon weburl.Rules // of the crawl: how it wrote URLs before it fetched them
	Start []string     // the URLs to begin with, as the crawl has them
	Temp  string       // where it is sorted what does not fit into memory; default the system's folder for that
}

var _ export.Planner = (*Exporter)(nil)

// An Exporter makes a site of files.
type Exporter struct {
	cfg    Config
	to     *target.Folder
	temp   string
	names  *extsort.Sorter
	parser *parse.Parser
	buf    []byte

	seed  maphash.Seed
	files map[uint64]uint8 // by the URL's hash: twice the number of its media type, 1 more if its name is kept apart
	moved map[uint64]move

	report       export.Report
	externalRefs int64 // references to parts of pages that are not in the crawl
}

// A move is where a URL redirects to.
type move struct {
	to      string
	hasPage bool // it has a small page
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

// Close removes what was sorted.
func (e *Exporter) Close() error { return errors.Join(e.names.Close(), os.RemoveAll(e.temp)) }

func (e *Exporter) hash(url string) uint64 { return maphash.String(e.seed, url) }

// Plan notes a URL, and what its file is called if no other has the name.
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

// Who has a name first: what is there before what leads on.
const (
	rankContent  = '0'
	rankRedirect = '1'
)

// requestName notes what a URL's file would be called.
func (e *Exporter) requestName(u weburl.URL, rank byte, mediaType string) error {
	key := names.RequestKey(names.Of(u, mediaType), string(rank)+u.String())
	return e.names.Add(0, key, []byte{names.TypeNumbers[mediaType]})
}

// hasFile reports whether an answer is something to look at.
func hasFile(status int) bool {
	return status/100 == 2 && status != http.StatusNoContent && status != http.StatusResetContent
}

// typeOf is the media type of a page by the name that is known; where none is declared, by how it begins.
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

// FinishPlan gives each file its name.
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

// assignName gives a file its name, or another where it has to be told apart. Of what only leads on there is none then.
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

// fileName is the name of a URL's file.
func (e *Exporter) fileName(url string, entry uint8) string {
	u, err := weburl.Parse(url)
	if err != nil {
		return "" // Plan has seen to it
	}
	name := names.Of(u, names.Types[entry>>1])
	if entry&1 != 0 {
		name = names.WithHash(name, url)
	}
	return name
}

// moveName is the name of the small page of a URL that redirects.
func (e *Exporter) moveName(url string) string {
	return e.fileName(url, names.TypeNumbers["text/html"]<<1)
}

const maxHops = 20 // redirects in a row

// resolve is where a URL's content lies, by redirects; "" if the crawl has it not.
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

// Write makes a URL's file.
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
	resp, err := p.ReadResponse()
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
	e.buf, err = e.parser.Rewrite(e.buf[:0], resp, mediaType, e.referFunc(name))
	if err != nil {
		e.report.AddNote(fmt.Sprintf("%s is as it was: %v", p.URL, err))
	}
	return e.to.Put(name, e.buf)
}

// referFunc says what references of a file are replaced by.
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

// writeMove makes the small page of a URL that redirects. It goes on by itself only where that stays in the folder.
func (e *Exporter) writeMove(url, to string) error {
	name := e.moveName(url)
	u, err := weburl.Parse(to)
	if err != nil {
		return err
	}
	return e.to.Put(name, movePage(to, e.linkTo(name, u), e.resolve(u) != ""))
}

// linkTo is a reference from a file to a URL.
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

const maxStartLinks = 1000 // links of the first page

// Finish writes the page to begin with.
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
		r.Notes = append(r.Notes, fmt.Sprintf("%d references to images, styles and other parts of pages lead to the web: "+
			"the crawl has them not", e.externalRefs))
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
