package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/parse"
	"kumo/internal/engine/filter"
)

// A Trial is the result of one test question.
type Trial struct {
	Point  string            `json:"point"`
	URL    string            `json:"url"`
	Drop   string            `json:"drop,omitempty"`
	NewURL string            `json:"new_url,omitempty"`
	Rank   float64           `json:"rank,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Fields json.RawMessage   `json:"fields,omitempty"`
	Title  string            `json:"title,omitempty"`
	Text   string            `json:"text,omitempty"`
	Links  []string          `json:"links,omitempty"`
	Millis float64           `json:"ms"`              // time until the answer
	Error  string            `json:"error,omitempty"` // why there is no answer
}

// Try asks questions one by one, and calls tell with each result. Its error is not a failure of the filter.
func Try(p Filter, questions []filter.Question, tell func(*Trial) error) error {
	for i := range questions {
		q := &questions[i]
		begun := time.Now()
		answers, err := p.Ask(questions[i : i+1])
		said := Trial{Point: q.Point, URL: q.URL, Millis: float64(time.Since(begun).Microseconds()) / 1000}
		unanswered, is := errors.AsType[*filter.UnansweredError](err)
		switch {
		case is:
			said.Error = unanswered.Why.Error()
		case err != nil:
			return err
		default:
			a := answers[0]
			said.Drop, said.NewURL, said.Rank, said.Header, said.Fields = a.Drop, a.URL, a.Rank, a.Header, a.Fields
			said.Title, said.Text, said.Links = a.Title, a.Text, a.Links
		}
		if err := tell(&said); err != nil {
			return err
		}
	}
	return nil
}

// Summary describes the result in one line.
func (t *Trial) Summary() string {
	if t.Error != "" {
		return "NO ANSWER, asked twice: " + t.Error
	}
	if t.Drop != "" {
		return "drop: " + t.Drop
	}
	var parts []string
	if t.NewURL != "" {
		parts = append(parts, "becomes "+filter.Plain(t.NewURL, 200))
	}
	if t.Rank > 0 {
		parts = append(parts, "rank "+strconv.FormatFloat(t.Rank, 'g', 4, 64))
	}
	for name, value := range t.Header {
		parts = append(parts, name+": "+value)
	}
	if t.Fields != nil {
		parts = append(parts, "fields "+filter.Plain(string(t.Fields), 200))
	}
	if t.Title != "" {
		parts = append(parts, "title "+filter.Plain(t.Title, 200))
	}
	if t.Text != "" {
		parts = append(parts, "text "+filter.Plain(t.Text, 200))
	}
	if len(t.Links) > 0 {
		parts = append(parts, fmt.Sprintf("%d links", len(t.Links)))
	}
	if len(parts) == 0 {
		return "yes"
	}
	return "yes, " + strings.Join(parts, ", ")
}

// URLQuestions returns the questions about a URL: as a link, and as a request.
func URLQuestions(c *filter.Choice, url string) (all []filter.Question) {
	it := item.FromSeed(url)
	if c.Asks(filter.Link) {
		all = append(all, LinkQuestion(&it, &page.Link{URL: url, Kind: page.Anchor}, url))
	}
	if c.Asks(filter.Request) {
		all = append(all, RequestQuestion(&it))
	}
	return all
}

// PageQuestions returns the questions about a page as it was received: about the page, and about up to most of its
// links.
func PageQuestions(c *filter.Choice, url string, status int, header http.Header, body []byte,
	most int) ([]filter.Question, error) {
	resp := page.Response{URL: url, Status: status, Header: header, Payload: body, Body: body, Start: time.Now()}
	var pg page.Page
	err := parse.New(parse.Config{Agent: "kumo", AnchorText: true, PlainText: true, Language: true}).Parse(&resp, &pg)
	if err != nil && pg.Base == "" {
		return nil, err
	}
	var all []filter.Question
	rec := page.Record{URL: url, Time: resp.Start, Response: &resp, Page: &pg}
	if c.Asks(filter.Record) {
		all = append(all, RecordQuestion(&rec, c))
	}
	it := item.FromSeed(url)
	for i := range pg.Links[:min(len(pg.Links), most)] {
		if c.Asks(filter.Link) {
			all = append(all, LinkQuestion(&it, &pg.Links[i], pg.Links[i].URL))
		}
	}
	return all, nil
}
