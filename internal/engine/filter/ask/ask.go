// Package ask connects an engine's hooks to filters: external programs and Starlark scripts. Filters run in order, and
// each sees only the items that the filters before it passed.
package ask

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/lang"
	"kumo/internal/content/parse"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/filter"
	"kumo/internal/engine/filter/star"
	"kumo/internal/state/rank"
)

// A Filter answers questions. Ask may be called concurrently; its error ends the crawl.
type Filter interface {
	Name() string
	Choice() *filter.Choice
	Ask(questions []filter.Question) ([]filter.Answer, error)
}

var (
	_ Filter = (*filter.Pool)(nil)
	_ Filter = (*star.Script)(nil)
)

// MaxHTML is how many bytes of a page's HTML a program gets.
const MaxHTML = 1 << 20

// Check returns the errors in an answer's content; its form has been checked. Use it as a pool's Config.Check.
func Check(point string, a *filter.Answer) error {
	for name, value := range a.Header {
		if err := fetch.CheckField(http.CanonicalHeaderKey(name), value); err != nil {
			return fmt.Errorf("header field %q: %w", filter.Plain(name, filter.MaxReason), err)
		}
	}
	return nil
}

// Hooks returns hooks that ask the filters. A hook that no filter needs is nil.
func Hooks[F Filter](filters []F) (h crawl.Hooks) {
	if some := filtersAt(filters, filter.Link); len(some) > 0 {
		h.Link = func(from *item.Item, links []page.Link, edits []crawl.LinkEdit) error {
			return callLinkFilters(some, from, links, edits)
		}
	}
	if some := filtersAt(filters, filter.Request); len(some) > 0 {
		h.Request = func(it *item.Item, req *fetch.Request) (string, error) { return callRequestFilters(some, it, req) }
	}
	if some := filtersAt(filters, filter.Record); len(some) > 0 {
		h.Record = func(rec *page.Record) (string, error) { return callRecordFilters(some, rec) }
	}
	return h
}

// filtersAt returns the filters that want to be asked at a point.
func filtersAt[F Filter](filters []F, point string) (some []Filter) {
	for _, p := range filters {
		if p.Choice().Asks(point) {
			some = append(some, p)
		}
	}
	return some
}

// vetoBy returns a filter's reason with the filter's name.
func vetoBy(p Filter, reason string) string { return "filter " + p.Name() + ": " + reason }

func callLinkFilters(filters []Filter, from *item.Item, links []page.Link, edits []crawl.LinkEdit) error {
	questions, of := make([]filter.Question, 0, len(links)), make([]int, 0, len(links))
	for _, p := range filters {
		questions, of = questions[:0], of[:0]
		for i := range links {
			if edits[i].Veto == "" {
				questions, of = append(questions, LinkQuestion(from, &links[i], edits[i].URL)), append(of, i)
			}
		}
		answers, err := p.Ask(questions)
		if err != nil {
			return err
		}
		for k := range answers {
			edit(p, from, &answers[k], &edits[of[k]])
		}
	}
	return nil
}

// LinkQuestion returns the question about a link with its current URL.
func LinkQuestion(from *item.Item, l *page.Link, url string) filter.Question {
	depth := from.Depth
	if l.Kind != page.Redirect && !l.Kind.Embed() && from.Kind != page.Sitemap {
		depth++
	}
	return filter.Question{Point: filter.Link, URL: url, From: from.URL, Depth: int(depth), Element: l.Kind.String(),
		Text: l.Text, Rel: l.Rel}
}

// edit applies an answer to a link's edit.
func edit(p Filter, from *item.Item, a *filter.Answer, e *crawl.LinkEdit) {
	if a.Drop != "" {
		e.Veto = vetoBy(p, a.Drop)
		return
	}
	if a.Rank > 0 {
		e.Lift += rank.LiftOf(a.Rank)
	}
	if a.URL == "" {
		return
	}
	u, err := absolute(from.URL, a.URL)
	if err != nil {
		e.Veto = vetoBy(p, "changed to an invalid URL: "+filter.Plain(err.Error(), filter.MaxReason))
		return
	}
	e.URL = u
}

func absolute(from, ref string) (string, error) {
	base, err := weburl.Parse(from)
	if err != nil {
		return "", err
	}
	u, err := base.Resolve(ref)
	if err == nil && !u.IsHTTP() {
		err = errors.New("not http or https")
	}
	return u.Canonical().String(), err
}

func callRequestFilters(filters []Filter, it *item.Item, req *fetch.Request) (string, error) {
	q := []filter.Question{RequestQuestion(it)}
	for _, p := range filters {
		answers, err := p.Ask(q)
		if err != nil {
			return "", err
		}
		if why := answers[0].Drop; why != "" {
			return vetoBy(p, why), nil
		}
		for name, value := range answers[0].Header {
			if req.Header == nil {
				req.Header = http.Header{}
			}
			req.Header.Set(name, value)
		}
	}
	return "", nil
}

// RequestQuestion returns the question about a request.
func RequestQuestion(it *item.Item) filter.Question {
	return filter.Question{Point: filter.Request, URL: it.URL, From: it.From, Depth: int(it.Depth)}
}

func callRecordFilters(filters []Filter, rec *page.Record) (string, error) {
	for _, p := range filters {
		answers, err := answersFor(p, rec)
		if err != nil {
			return "", err
		}
		a := &answers[0]
		if a.Drop != "" {
			return vetoBy(p, a.Drop), nil
		}
		if a.Fields != nil && !rec.NoIndex && !rec.NoArchive { // as for fields by rules
			rec.Fields = append(rec.Fields, page.Fields{Rule: "filter " + p.Name(), Values: a.Fields})
		}
		read(rec, a)
	}
	return "", nil
}

// answersFor asks a filter about a page, and deletes the file with its body.
func answersFor(p Filter, rec *page.Record) ([]filter.Answer, error) {
	q := RecordQuestion(rec, p.Choice())
	if p.Choice().Wants(filter.WantBody) {
		end, err := addBody(q.Page, rec.Response)
		if err != nil { // such as a full disk
			q.BodyError = err.Error()
		}
		defer end()
	}
	return p.Ask([]filter.Question{q})
}

// Limits of bodies.
const (
	maxInline = 256 << 10 // bytes of a body that is in its question
	MaxBody   = 256 << 20 // bytes of one in a file
)

// addBody adds a body of any type without content coding, or its beginning. The caller calls end after the answer.
func addBody(told *filter.Page, res *page.Response) (end func(), err error) {
	in := res.PayloadReader()
	size := res.PayloadLen()
	switch {
	case res.FullBody != nil:
		in, size = res.FullBody(), MaxBody
	case res.Header.Get("Content-Encoding") != "" || len(res.Body) > 0:
		in, size = bytes.NewReader(res.Body), int64(len(res.Body))
	}
	in = io.LimitReader(in, MaxBody+1)
	told.BodyCut = res.Truncated != page.Whole
	if size <= maxInline {
		told.Body, err = io.ReadAll(in)
		return func() {}, err
	}
	f, err := os.CreateTemp("", "kumo-body-")
	if err != nil {
		return func() {}, err
	}
	end = func() { _ = os.Remove(f.Name()) } // the system empties its temporary folder
	n, err := io.Copy(f, in)
	if n > MaxBody {
		told.BodyCut, err = true, errors.Join(err, f.Truncate(MaxBody))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		told.BodyFile = f.Name()
	}
	return end, err
}

// read applies what a filter has read on a page.
func read(rec *page.Record, a *filter.Answer) {
	if a.Title != "" {
		rec.Page.Title = filter.Plain(a.Title, maxTitle)
	}
	if a.Text != "" && !rec.NoIndex && !rec.NoArchive {
		t := page.MainText{Kind: "document", Lang: lang.Of(a.Text, "")}
		if rec.Text != nil {
			t = *rec.Text
		}
		t.Text, t.Title = strings.ToValidUTF8(a.Text, "\uFFFD"), cmp.Or(rec.Page.Title, t.Title)
		rec.Text = &t
	}
	for _, ref := range a.Links {
		if to, err := absolute(rec.URL, ref); err == nil {
			rec.Page.Links = append(rec.Page.Links, page.Link{URL: to, Kind: page.Anchor})
		}
	}
}

const maxTitle = 1 << 10 // bytes, as parsers read

// RecordQuestion returns the question about an answered page.
func RecordQuestion(rec *page.Record, c *filter.Choice) filter.Question {
	res, read := rec.Response, rec.Page
	told := &filter.Page{Status: res.Status, Time: rec.Time.UTC().Format(time.RFC3339), Type: read.Type,
		Charset: read.Charset,
		Lang:    read.Lang, Title: read.Title, Bytes: res.PayloadLen(), Links: len(read.Links)}
	for i := range read.Links {
		if read.Links[i].Kind == page.Redirect {
			told.Final = read.Links[i].URL
		}
	}
	q := filter.Question{Point: filter.Record, URL: rec.URL, From: rec.From, Depth: rec.Depth, Page: told}
	if c.Wants(filter.WantHeader) {
		told.Header = res.Header.Clone()
		delete(told.Header, "Set-Cookie") // cookies are secret
	}
	if c.Wants(filter.WantHTML) {
		told.HTML, told.Cut = text(rec)
	}
	if c.Wants(filter.WantText) && rec.Text != nil {
		q.Text = rec.Text.Text
	}
	return q
}

// text returns a page as text, and a document as HTML; "" if it is neither.
func text(rec *page.Record) (s string, cut bool) {
	res, read := rec.Response, rec.Page
	if rec.Shown != nil {
		html := rec.Shown.Body[:min(len(rec.Shown.Body), MaxHTML)]
		return strings.ToValidUTF8(string(html), ""), len(html) < len(rec.Shown.Body)
	}
	if !parse.IsHTML(read.Sniffed) && !parse.Readable(read.Sniffed) {
		return "", false
	}
	body := res.Body[:min(len(res.Body), MaxHTML)]
	return string(parse.UTF8(body, read.Charset)), len(body) < len(res.Body) || res.FullBody != nil
}
