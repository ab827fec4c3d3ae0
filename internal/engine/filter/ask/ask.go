// Package ask connects an engine's hooks to filters: external programs and Starlark scripts. Filters run in order, and
// each sees only the items that the filters before it passed.
package ask

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
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
		answers, err := p.Ask([]filter.Question{RecordQuestion(rec, p.Choice())})
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
	}
	return "", nil
}

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
		told.HTML, told.Cut = text(res, read)
	}
	if c.Wants(filter.WantText) && rec.Text != nil {
		q.Text = rec.Text.Text
	}
	return q
}

// text returns a page as text; "" if it is not text.
func text(res *page.Response, read *page.Page) (s string, cut bool) {
	if !parse.IsHTML(read.Sniffed) && !parse.Readable(read.Sniffed) {
		return "", false
	}
	body := res.Body[:min(len(res.Body), MaxHTML)]
	return string(parse.UTF8(body, read.Charset)), len(body) < len(res.Body) || res.FullBody != nil
}
