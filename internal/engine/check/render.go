package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/content/parse"
	"kumo/internal/content/render"
)

// RenderOut compares a page as it was received with the page after its scripts.
type RenderOut struct {
	URL   string `json:"url"` // after redirects and scripts
	Title string `json:"title"`
	// why the received page shows nothing without script: root, noscript, empty or redirect; "" if that is not known
	NeedsScript string  `json:"needs_script"`
	Complete    bool    `json:"complete"` // false: it still made requests when its time was over
	Seconds     float64 `json:"seconds"`  // to render it

	Requests int `json:"requests"` // with an answer
	Blocked  int `json:"blocked"`  // requests that only a browser may make, such as POST, or beyond the limit
	Failed   int `json:"failed"`
	Bytes    int `json:"bytes"` // of all bodies, decoded
	// What the page tried and a rendered page cannot do:
	WebSockets int `json:"web_sockets"`
	Windows    int `json:"windows"`

	LinksBefore int      `json:"links_before"` // to other pages, as received
	Links       int      `json:"links"`        // after scripts
	NewLinks    []string `json:"new_links"`    // those that only scripts have added
	WordsBefore int      `json:"words_before"` // of the main text
	Words       int      `json:"words"`
	HTML        string   `json:"html"`
}

// Render compares a page with its rendering.
func Render(received PageIn, r *render.Result) (RenderOut, error) {
	out := RenderOut{URL: r.URL, Title: r.Title, Complete: r.Complete, Seconds: r.Took.Round(time.Millisecond).Seconds(),
		Requests: r.Requests, Blocked: r.Blocked, Failed: r.Failed, Bytes: r.Bytes, WebSockets: r.WebSockets,
		Windows: r.Windows, NewLinks: []string{}, HTML: string(r.HTML)}
	before, need, err := targets(received)
	if err != nil {
		return out, err
	}
	rendered := PageIn{HTML: r.HTML, URL: r.URL, ContentType: "text/html; charset=utf-8"}
	after, _, err := targets(rendered)
	if err != nil {
		return out, err
	}
	out.NeedsScript, out.LinksBefore, out.Links = need, len(before), len(after)
	for _, url := range after {
		if !slices.Contains(before, url) {
			out.NewLinks = append(out.NewLinks, url)
		}
	}
	out.WordsBefore, out.Words = words(received), words(rendered)
	return out, nil
}

// targets returns the URLs of the pages to which a page links, and why the page needs script.
func targets(in PageIn) (urls []string, need string, err error) {
	pg, err := readPage(in, parse.Config{Language: true})
	if err != nil && pg.Base == "" {
		return nil, "", err
	}
	for i := range pg.Links {
		if l := &pg.Links[i]; !l.Kind.Embed() {
			urls = append(urls, l.URL)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls), string(pg.NeedsScript), nil
}

// words returns the number of words of a page's main text; 0 if it has none.
func words(in PageIn) int {
	t, err := Text(in)
	if err != nil {
		return 0
	}
	return len(strings.Fields(t.Text))
}

func (out RenderOut) show(s *printer) {
	s.pairs("url", out.URL, "title", out.Title, "needs script", cmp.Or(out.NeedsScript, "not known to"))
	s.field("time", fmt.Sprintf("%.2f s", out.Seconds))
	s.field("requests", fmt.Sprintf("%d, %d bytes; %d blocked, %d failed", out.Requests, out.Bytes, out.Blocked, out.Failed))
	s.field("links", fmt.Sprintf("%d as received, %d after scripts", out.LinksBefore, out.Links))
	s.field("main text", fmt.Sprintf("%d words as received, %d after scripts", out.WordsBefore, out.Words))
	s.field("new links", out.NewLinks...)
}

func (out RenderOut) note() string {
	if !out.Complete {
		return "the page still made requests when its time was over: what it had then is shown (see --timeout)"
	}
	return ""
}
