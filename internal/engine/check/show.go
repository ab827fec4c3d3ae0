package check

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"kumo/internal/base/stats"
)

func (out RobotsOut) show(s *printer) {
	s.field("allowed", map[bool]string{false: "no", true: "yes"}[out.Allowed])
	s.field("rule", cmp.Or(out.Rule, none))
	if out.Status != 0 {
		s.field("status", fmt.Sprint(out.Status))
	}
	delay := none
	if out.CrawlDelay > 0 {
		delay = fmt.Sprintf("%vs", out.CrawlDelay)
	}
	s.field("crawl delay", delay)
	var rates, params []string
	for _, r := range out.RequestRate {
		hours := ""
		if r.Hours != "" {
			hours = ", " + r.Hours + " UTC"
		}
		rates = append(rates, fmt.Sprintf("%v in %vs%s", r.Requests, r.Seconds, hours))
	}
	s.field("request rate", rates...)
	for _, c := range out.CleanParams {
		params = append(params, strings.Join(c.Params, ", ")+" at "+c.Path)
	}
	s.field("clean params", params...)
	s.field("sitemaps", out.Sitemaps...)
	var lines []string
	for _, p := range out.Usage {
		lines = append(lines, p.show())
	}
	if len(lines) > 0 {
		s.field("usage", lines...)
	}
}

// show returns what a line states: "train_ai=n (line 3: Content-Usage: train-ai=n)".
func (p *Preference) show() string {
	said := p.Uses.String()
	if p.License != "" {
		said = strings.TrimSpace(said + " license=" + p.License)
	}
	return fmt.Sprintf("%s (line %d: %s)", cmp.Or(said, "nothing that is understood"), p.Number, p.Text)
}

func (out LinksOut) show(s *printer) {
	s.pairs("title", out.Title, "charset", out.Charset, "base", out.Base, "canonical", out.Canonical, "robots", out.Robots,
		"refresh", out.Refresh)
	if out.XRobotsTag != "" {
		s.field("x-robots-tag", out.XRobotsTag)
	}
	if out.NeedsScript != "" {
		s.field("needs script", out.NeedsScript)
	}
	s.endBlock()
	if len(out.Links) > 0 {
		s.row("kind", "url", "rel", "text")
	}
	kinds := map[string]int{}
	for _, l := range out.Links {
		s.row(l.Kind, l.URL, l.Rel, l.Text)
		kinds[l.Kind]++
	}
	s.endBlock()
	s.field("links", cmp.Or(counts(kinds), none))
}

func (out TextOut) show(s *printer) {
	s.pairs("title", out.Title, "headline", out.Headline, "published", out.Published, "author", out.Author,
		"lang", out.Lang, "kind", out.Kind)
	s.endBlock()
	for line := range strings.Lines(out.Text) {
		s.row(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  "))
	}
	if out.Comments == "" {
		return
	}
	s.endBlock()
	s.row("comments:")
	for line := range strings.Lines(out.Comments) {
		s.row("  " + strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  "))
	}
}

func (out FieldsOut) show(s *printer) {
	for _, r := range out.Rules {
		s.endBlock()
		if !r.Matches {
			s.row("rule "+r.Rule, "does not apply to the URL")
			continue
		}
		said := stats.Count(r.Records, "records")
		if r.Lacking > 0 {
			said += fmt.Sprintf(", %d more %s a field that is required", r.Lacking, stats.Either(r.Lacking, "lacks", "lack"))
		}
		s.row("rule "+r.Rule, said)
		for _, f := range r.Fields {
			often := ""
			if f.Found+f.Missed > 1 {
				often = fmt.Sprintf(" (in %d of %d)", f.Found, f.Found+f.Missed)
			}
			if f.Found > 0 {
				s.row("  "+f.Field, string(f.Value)+often, f.Source)
			}
			if f.Missed > 0 {
				missing := "missing: "
				if f.Required {
					missing = "MISSING, and required: "
				}
				s.row("  "+f.Field, missing+f.Why)
			}
		}
	}
}

func (out MIMEOut) show(s *printer) {
	switch {
	case out.undeclared:
		s.field("declared", none)
	case !out.OK:
		s.field("ok", "no: not a media type")
	default:
		s.field("type", out.Type)
		s.field("parameters", values(reflect.ValueOf(out.Parameters))...)
	}
	if out.Sniffed != "" {
		s.field("sniffed", out.Sniffed)
	}
}

// counts formats the number of occurrences of each word, the most frequent first: "12 a, 3 img".
func counts(words map[string]int) string {
	names := stats.ByCount(words)
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", words[name], name)
	}
	return strings.Join(names, ", ")
}

// Note returns remarks about an output that the output itself does not contain; "" if there are none.
func Note(answer any) string {
	if a, ok := answer.(interface{ note() string }); ok {
		return a.note()
	}
	return ""
}

func (out LinksOut) note() string { return cmp.Or(out.Malformed, out.unread) }

func (out SitemapOut) note() string { return out.Malformed }

func (out FieldsOut) note() string {
	var all []string
	if out.anyURL {
		all = append(all, "no URL given: all rules are applied, whatever URLs they are for")
	}
	if out.Cut {
		all = append(all, "the page is too large: only its beginning was read")
	}
	return strings.Join(all, "\n")
}
