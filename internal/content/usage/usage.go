// Package usage reads what a site states about the use of its pages: for training of AI models, for search, as input of
// AI models, and for text and data mining.
//
// It reads
//
//   - Content-Usage in robots.txt and as a header field (draft-ietf-aipref-vocab-08, draft-ietf-aipref-attach-05),
//   - Content-Signal in robots.txt and as a header field (draft-romm-aipref-contentsignals-00),
//   - TDMRep in header fields, meta elements and /.well-known/tdmrep.json (W3C Community Group, 2024-05-10),
//   - licenses in robots.txt (RSL 1.0), link elements and Link fields,
//   - the directives noai and noimageai in meta elements and X-Robots-Tag fields.
//
// None of them is a standard yet, so statements are also kept as written. A statement that cannot be parsed states
// nothing. If several statements contradict each other, the use is not allowed. TDMRep alone defines an order instead:
// a meta element replaces a header field, which replaces tdmrep.json.
package usage

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/dunglas/httpsfv"

	"kumo/internal/base/page"
	"kumo/internal/content/robots"
)

const (
	yes = "y"
	no  = "n"
)

// A Statement is one statement about a page.
type Statement struct {
	page.Uses
	Policy, License string

	Source string // the place, as in [page.Usage]
	Raw    string // as written
}

// limits of the text that is kept, in bytes. Statements are repeated for each page.
const (
	maxRaw = 1 << 10 // of all statements of a page
	maxURL = 1 << 10
)

// A collector combines the statements about a page.
type collector struct {
	usage *page.Usage // nil if there are none
}

// Of returns the usage preferences of a page: those of its site's robots.txt, by the rule of its tdmrep.json (nil: none), by the
// header of its response and by the page. It returns nil, without allocating memory, if there are none.
func Of(lines []robots.Statement, rule *TDMRule, resp *page.Response, pg *page.Page) *page.Usage {
	var c collector
	for i := range lines {
		c.add(FromRobots(&lines[i]))
	}
	if rule != nil {
		c.add(rule.statement())
	}
	c.header(resp.Header)
	c.page(resp.Header, pg)
	return c.usage
}

// add adds a statement. A later statement of TDMRep replaces an earlier one.
func (c *collector) add(s Statement) {
	if s.Raw == "" {
		return
	}
	if c.usage == nil {
		c.usage = &page.Usage{}
	}
	u := c.usage
	u.TrainAI = combined(u.TrainAI, s.TrainAI)
	u.Search = combined(u.Search, s.Search)
	u.AIInput = combined(u.AIInput, s.AIInput)
	u.TDM = cmp.Or(s.TDM, u.TDM)
	u.Policy, u.License = cmp.Or(s.Policy, u.Policy), cmp.Or(u.License, s.License)
	if raw := clean(s.Raw); u.Raw == "" {
		u.Raw = truncated(raw, maxRaw)
	} else if len(u.Raw)+len("; ")+len(raw) <= maxRaw {
		u.Raw += "; " + raw
	}
	if u.Source == "" {
		u.Source = s.Source
	} else if !strings.Contains(" "+u.Source+" ", " "+s.Source+" ") {
		u.Source += " " + s.Source
	}
}

// combined combines two values: a use is not allowed if one statement says so.
func combined(a, b string) string {
	if a == no || b == no {
		return no
	}
	return cmp.Or(a, b)
}

// FromRobots returns the statement of a line in robots.txt.
func FromRobots(line *robots.Statement) Statement {
	s := Statement{Source: "robots.txt:" + strconv.Itoa(line.Number), Raw: line.Text}
	switch line.Kind {
	case robots.ContentUsage:
		s.Uses = contentUsage([]string{line.Value})
	case robots.ContentSignal:
		s.Uses = contentSignal(line.Value)
	case robots.License:
		s.License = reference(line.Value)
	}
	return s
}

// contentUsage parses Content-Usage, a Dictionary of structured fields. Other members and values than those of the
// draft are ignored, and so are parameters.
func contentUsage(values []string) (u page.Uses) {
	dict, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return page.Uses{}
	}
	preference := func(label string) string {
		member, _ := dict.Get(label)
		item, _ := member.(httpsfv.Item)
		if token, ok := item.Value.(httpsfv.Token); ok && (token == yes || token == no) {
			return string(token)
		}
		return ""
	}
	return page.Uses{TrainAI: preference("train-ai"), Search: preference("search")}
}

// contentSignal parses Content-Signal: "search=yes, ai-train=no, ai-input=no". Its member use is only kept as written.
func contentSignal(value string) (u page.Uses) {
	for part := range strings.SplitSeq(value, ",") {
		label, answer, _ := strings.Cut(part, "=")
		switch answer = strings.ToLower(strings.TrimSpace(answer)); answer {
		case "yes":
			answer = yes
		case "no":
			answer = no
		default:
			continue
		}
		switch strings.ToLower(strings.TrimSpace(label)) {
		case "ai-train":
			u.TrainAI = combined(u.TrainAI, answer)
		case "search":
			u.Search = combined(u.Search, answer)
		case "ai-input":
			u.AIInput = combined(u.AIInput, answer)
		}
	}
	return u
}

// header adds the statements of header fields.
func (c *collector) header(h http.Header) {
	if len(h) == 0 {
		return
	}
	if values := h["Content-Usage"]; len(values) > 0 {
		c.add(Statement{Uses: contentUsage(values), Source: "header", Raw: field("Content-Usage", values)})
	}
	if values := h["Content-Signal"]; len(values) > 0 {
		c.add(Statement{Uses: contentSignal(strings.Join(values, ",")), Source: "header",
			Raw: field("Content-Signal", values)})
	}
	reservation, policy := h["Tdm-Reservation"], h["Tdm-Policy"]
	if len(reservation) > 0 || len(policy) > 0 {
		s := tdmStatement(first(reservation), first(policy), "tdm-reservation: ", "tdm-policy: ")
		s.Source = "header"
		c.add(s)
	}
}

// page adds the statements of a page's elements, and those that the parser reads from header fields and elements.
func (c *collector) page(h http.Header, pg *page.Page) {
	if pg.TDM != (page.TDM{}) {
		s := tdmStatement(pg.TDM.Reservation, pg.TDM.Policy, "meta tdm-reservation: ", "meta tdm-policy: ")
		s.Source = "meta"
		c.add(s)
	}
	if all := pg.Robots.NoAI | pg.Robots.NoImageAI; all != 0 {
		var u page.Uses
		if pg.Robots.NoAI != 0 || strings.HasPrefix(pg.Sniffed, "image/") {
			u.TrainAI = no
		}
		if all&page.InHeader != 0 {
			c.add(Statement{Uses: u, Source: "header", Raw: field("X-Robots-Tag", h["X-Robots-Tag"])})
		}
		if all&page.InMeta != 0 {
			c.add(Statement{Uses: u, Source: "meta", Raw: "meta robots: " + pg.Robots.Meta})
		}
	}
	for i := range pg.Links {
		if l := &pg.Links[i]; l.Rel != "" && (l.Kind == page.Alternate || l.Kind == page.Header) && isLicense(l.Rel) {
			source, raw := "link", "link license: "
			if l.Kind == page.Header {
				source, raw = "header", "Link license: "
			}
			c.add(Statement{License: reference(l.URL), Source: source, Raw: raw + l.URL})
		}
	}
}

// isLicense reports whether a rel contains the link type license.
func isLicense(rel string) bool {
	if len(rel) < len("license") {
		return false
	}
	for linkType := range strings.FieldsSeq(rel) {
		if strings.EqualFold(linkType, "license") {
			return true
		}
	}
	return false
}

// tdmStatement returns a statement of TDMRep. The labels precede the values in Raw.
func tdmStatement(reservation, policy, reservationLabel, policyLabel string) (s Statement) {
	if reservation != "" {
		s.TDM, s.Raw = tdmValue(reservation), reservationLabel+reservation
	}
	if policy != "" {
		s.Policy = reference(policy)
		if s.Raw != "" {
			s.Raw += ", "
		}
		s.Raw += policyLabel + policy
	}
	return s
}

// tdmValue parses a tdm-reservation: 1 reserves the rights.
func tdmValue(s string) string {
	switch strings.TrimSpace(s) {
	case "1":
		return no
	case "0":
		return yes
	}
	return ""
}

// reference returns a URL as written, without control characters; "" if it is too long.
func reference(url string) string {
	if url = strings.TrimSpace(url); len(url) > maxURL {
		return ""
	}
	return strings.Clone(clean(url))
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func field(name string, values []string) string {
	return name + ": " + strings.Join(values, ", ")
}

// clean returns a text as valid UTF-8 in one line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func truncated(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return strings.Clone(s) // it may be part of a page
}
