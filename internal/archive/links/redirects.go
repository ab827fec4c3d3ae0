package links

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/store/crawllog"
	"kumo/internal/state/store/jsonl"
)

// A Chain is a chain of redirects from a URL to its end.
type Chain struct {
	URL       string `json:"url"`              // the first
	Links     int64  `json:"links"`            // links of pages to URL; a page counts once for each kind of link
	Redirects int    `json:"redirects"`        // length of the chain
	End       string `json:"end"`              // the last URL
	Status    int    `json:"status,omitempty"` // of End; 0 if there is no response
	// Error is why End has no usable response: "dns", "timeout", "loop", "redirects" (too many), ... If End was not
	// fetched, it is the rule that excluded it, "elsewhere" (another site) or "not fetched".
	Error  string `json:"error,omitempty"`
	Broken bool   `json:"broken,omitempty"` // the chain leads to an error or round in circles
	Steps  []Step `json:"steps"`            // the URLs that redirect, from the first on
}

// A Step is a redirect of a chain.
type Step struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
	To     string `json:"to"`
}

// Redirects calls tell with the redirect chains of the crawl, sorted by their first URL. A chain begins at a URL that a
// page links to, or that no other URL redirects to.
func (f *Finder) Redirects(ctx context.Context, tell func(*Chain) error) error {
	return f.Run(ctx, f.RedirectQuery(tell))
}

// RedirectQuery returns the query of [Finder.Redirects].
func (f *Finder) RedirectQuery(tell func(*Chain) error) *Query {
	q := f.newQuery("redirects", combineRedirects)
	q.visit = func(p *pageLinks, l *outlink) error {
		redirect := l.kind == page.Redirect.String()
		if redirect {
			if out, known := f.known.at(p.url); known && out.next != "" {
				if err := q.addRedirect(p.url, redirecting{}); err != nil {
					return err
				}
			}
		}
		if out, known := f.known.at(l.to); !known || out.next == "" {
			return nil
		}
		if redirect {
			return q.addRedirect(l.to, redirecting{isTarget: true})
		}
		return q.addRedirect(l.to, redirecting{links: 1})
	}
	q.finish = func(ctx context.Context) error {
		if err := f.addRedirectsOfPages(ctx, q); err != nil {
			return err
		}
		ends, err := f.outcomesOfEnds(ctx)
		if err != nil {
			return err
		}
		return q.eachRedirect(ctx, func(url string, r redirecting) error {
			c := f.known.end(url)
			if loops := c.reason == reasonLoop && slices.Contains(c.hops, url); r.links == 0 && r.isTarget && !loops {
				return nil // part of a chain that begins elsewhere
			}
			return tell(f.chainFrom(url, r.links, c, ends))
		})
	}
	return q
}

// addRedirectsOfPages adds the redirects in pages.jsonl: a crawl without WARC files has no other list of them.
func (f *Finder) addRedirectsOfPages(ctx context.Context, q *Query) error {
	return f.eachLine(ctx, pagesName, func(text []byte) error {
		if !bytes.Contains(text, []byte(`,"status":3`)) {
			return nil
		}
		p, err := jsonl.ParsePage(text)
		if err != nil {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		if out, known := f.known.at(p.URL); !known || out.next == "" {
			return nil
		}
		return q.addRedirect(p.URL, redirecting{})
	})
}

// chainFrom returns the chain that begins at a URL.
func (f *Finder) chainFrom(url string, links int64, c chain, ends map[uint64]outcome) *Chain {
	x := &Chain{URL: url, Links: links, Redirects: len(c.hops), End: url, Status: c.status, Error: c.reason,
		Broken: c.broken()}
	for _, next := range c.hops {
		from, _ := f.known.at(x.End)
		x.Steps = append(x.Steps, Step{URL: x.End, Status: from.status, To: next})
		x.End = next
	}
	if x.Status == 0 && x.Error == "" {
		out := f.outcomeOf(x.End, ends)
		x.Status, x.Error = out.status, out.reason
	}
	return x
}

// Names of the outcomes of URLs that were not fetched.
const (
	reasonLoop       = "loop"
	reasonElsewhere  = "elsewhere"
	reasonNotFetched = "not fetched"
	reasonScheme     = "scheme"
)

// outcomeOf returns the outcome of a URL that has no failure in crawl.log.
func (f *Finder) outcomeOf(url string, found map[uint64]outcome) outcome {
	if out := found[f.known.hash(url)]; out != (outcome{}) {
		return out
	}
	u, err := weburl.Parse(url)
	switch {
	case err != nil || !u.IsHTTP():
		return outcome{reason: reasonScheme}
	case f.known.checks[f.known.hash(url)]:
		return outcome{status: http.StatusOK}
	case !f.known.hosts[f.known.hash(u.Host())]:
		return outcome{reason: reasonElsewhere}
	}
	return outcome{reason: reasonNotFetched}
}

// outcomesOfEnds returns the outcomes of the redirect targets that succeeded or were excluded, by hash. Their number is
// bounded by that of the redirects.
func (f *Finder) outcomesOfEnds(ctx context.Context) (map[uint64]outcome, error) {
	ends := map[uint64]outcome{}
	for _, out := range f.known.of {
		if _, known := f.known.at(out.next); out.next != "" && !known {
			ends[f.known.hash(out.next)] = outcome{}
		}
	}
	return ends, f.resolve(ctx, ends)
}

// resolve sets the outcomes of URLs, by hash, from skipped.jsonl and crawl.log.
func (f *Finder) resolve(ctx context.Context, of map[uint64]outcome) error {
	if len(of) == 0 {
		return nil
	}
	rules := map[string]string{} // each rule once in memory
	err := f.eachLine(ctx, "skipped.jsonl", func(text []byte) error {
		s, err := jsonl.ParseSkip(text)
		if err != nil {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		h := f.known.hash(s.URL)
		if _, wanted := of[h]; wanted {
			if _, met := rules[s.Rule]; !met {
				rules[s.Rule] = s.Rule
			}
			of[h] = outcome{reason: rules[s.Rule]}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.eachLine(ctx, "crawl.log", func(text []byte) error {
		if e, err := crawllog.Parse(text); err == nil && e.Status > 0 {
			h := f.known.hash(e.URL)
			if _, wanted := of[h]; wanted {
				of[h] = outcome{status: e.Status}
			}
		}
		return nil
	})
}

// redirecting has what a query knows of a URL that redirects.
type redirecting struct {
	links    int64 // to the URL
	isTarget bool  // another URL redirects to it
}

func (q *Query) addRedirect(url string, r redirecting) error {
	return q.sorter.Add(0, []byte(url), r.append(nil))
}

func (r redirecting) append(b []byte) []byte {
	mark := byte('-')
	if r.isTarget {
		mark = 'r'
	}
	return strconv.AppendInt(append(b, mark), r.links, 10)
}

func (r *redirecting) add(value []byte) error {
	if len(value) < 2 {
		return errors.New("links: a record of a redirect is too short")
	}
	n, err := strconv.ParseInt(string(value[1:]), 10, 64)
	r.links += n
	r.isTarget = r.isTarget || value[0] == 'r'
	return err
}

func combineRedirects(_ []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
	var r redirecting
	for v := range values {
		if err := r.add(v); err != nil {
			return err
		}
	}
	return emit(r.append(nil))
}

// eachRedirect calls f with each URL that redirects.
func (q *Query) eachRedirect(ctx context.Context, call func(url string, r redirecting) error) error {
	var url []byte
	var r redirecting
	err := q.sorter.Each(ctx, func(key, value []byte) error {
		if !bytes.Equal(key, url) {
			if len(url) > 0 {
				if err := call(string(url), r); err != nil {
					return err
				}
			}
			url, r = append(url[:0], key...), redirecting{}
		}
		return r.add(value)
	})
	if err != nil || len(url) == 0 {
		return err
	}
	return call(string(url), r)
}
