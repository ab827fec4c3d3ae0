package parse

import (
	"bytes"
	"strings"
	"time"

	"kumo/internal/base/page"
)

// robots collects the robots rules of meta elements and X-Robots-Tag fields. All applicable rules are combined, so the
// strictest wins.
type robots struct{ page.Robots }

// maxRobots limits the original text of the rules that is kept, in bytes.
const maxRobots = 1 << 10

// meta adds the content of a meta element.
func (r *robots) meta(content []byte) {
	r.Meta = joined(r.Meta, content)
	r.rules(content, "", true)
}

// header adds an X-Robots-Tag field. Rules after "agent:" apply to that agent only, up to the next agent.
func (r *robots) header(field []byte, agent string) {
	r.Header = joined(r.Header, field)
	r.rules(field, agent, false)
}

func joined(all string, rules []byte) string {
	rules = cut(bytes.TrimSpace(rules), max(0, maxRobots-len(all)))
	if all == "" || len(rules) == 0 {
		return all + string(rules)
	}
	return all + ", " + string(rules)
}

// rules parses comma-separated rules. Unless all is set, they may be addressed to agents.
func (r *robots) rules(in []byte, agent string, all bool) {
	mine := true
	for len(in) > 0 {
		rule := trimLeft(in[:indexByte(in, ',')])
		name, _, valued := bytes.Cut(rule, []byte(":"))
		name = bytes.TrimSpace(name)
		if valued && !all && isAgent(name) {
			product, _, _ := bytes.Cut(name, []byte("/"))
			mine = len(name) == 0 || agent != "" && bytes.EqualFold(product, []byte(agent)) || string(name) == "*"
			in = in[bytes.IndexByte(in, ':')+1:]
			continue
		}
		if equalFold(name, "unavailable_after") && valued {
			_, value, _ := bytes.Cut(in, []byte(":"))
			var until time.Time
			if until, in = date(value); mine {
				r.setUntil(until)
			}
			continue
		}
		in = in[min(len(in), indexByte(in, ',')+1):]
		for name := range bytes.FieldsFuncSeq(name, func(c rune) bool { return c == ' ' || c == '\t' || c == ';' }) {
			if mine { // many pages separate rules with spaces
				r.rule(name, all)
			}
		}
	}
}

// isAgent reports whether the text before a colon is an agent: a product name with or without a version, not a rule
// with a value or a part of a date.
func isAgent(name []byte) bool {
	for i, c := range name {
		if !isLetter(c) && c != '-' && c != '_' && c != '*' && (i == 0 || c != '/' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return !isValued(name)
}

// isValued reports whether a rule of this name has a value.
func isValued(name []byte) bool {
	return equalFold(name, "unavailable_after") || len(name) > 4 && equalFold(name[:4], "max-")
}

func (r *robots) rule(name []byte, meta bool) {
	place := page.InHeader
	if meta {
		place = page.InMeta
	}
	switch {
	case equalFold(name, "noai"):
		r.NoAI |= place
	case equalFold(name, "noimageai"):
		r.NoImageAI |= place
	case equalFold(name, "none"):
		r.NoIndex, r.NoFollow = true, true
	case equalFold(name, "noindex"):
		r.NoIndex = true
	case equalFold(name, "nofollow"):
		r.NoFollow = true
	case equalFold(name, "noarchive"), equalFold(name, "nocache"):
		r.NoArchive = true
	}
}

// setUntil keeps the earliest date.
func (r *robots) setUntil(t time.Time) {
	if !t.IsZero() && (r.UnavailableAfter.IsZero() || t.Before(r.UnavailableAfter)) {
		r.UnavailableAfter = t
	}
}

// dates are the formats of unavailable_after: RFC 822 and 850, ISO 8601, and similar ones.
var dates = []string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05",
	"2006-01-02",
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05", "2 Jan 06 15:04:05 -0700", "2 Jan 06 15:04:05",
	"2 Jan 06 15:04 -0700",
	"2-Jan-2006 15:04:05 -0700", "2-Jan-2006 15:04:05", "2-Jan-06 15:04:05 -0700", "2-Jan-06 15:04:05", "2 Jan 2006",
	"2-Jan-2006",
	"Jan 2 15:04:05 2006", "2 January 2006 15:04:05 -0700", "2 January 2006 15:04:05", "2 January 2006",
	"2-Jan-2006 15:04 -0700", "2-Jan-06 15:04 -0700", "2 Jan 2006 15:04 -0700", "2006-01-02T15:04:05-0700",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04Z07:00", "Jan 2 2006 15:04:05 -0700", "Jan 2 2006 15:04:05", "Jan 2 2006",
	"January 2 2006 15:04:05 -0700", "January 2 2006",
}

// zones are the names of time zones in RFC 822.
var zones = strings.NewReplacer(" GMT", " +0000", " UTC", " +0000", " UT", " +0000", " EST", " -0500", " EDT", " -0400",
	" CST", " -0600", " CDT", " -0500", " MST", " -0700", " MDT", " -0600", " PST", " -0800", " PDT", " -0700", " WET",
	" +0000", " WEST", " +0100", " BST", " +0100", " CET", " +0100", " CEST", " +0200", " EET", " +0200", " EEST",
	" +0300", " MSK", " +0300", " IST", " +0530", " JST", " +0900", " KST", " +0900", " AEST", " +1000", " AEDT", " +1100")

// date parses the date at the beginning of in, which may have a comma after the weekday. It returns the text after the
// date's comma. The date is zero if it cannot be parsed.
func date(in []byte) (t time.Time, rest []byte) {
	end := indexByte(in, ',')
	text := strings.TrimSpace(string(cut(in[:end], 64)))
	if isWeekday(text) && end < len(in) {
		in = in[end+1:]
		end = indexByte(in, ',')
		text = strings.TrimSpace(string(cut(in[:end], 64)))
	} else if day, after, ok := strings.Cut(text, " "); ok && isWeekday(day) {
		text = after
	}
	rest = in[min(len(in), end+1):]
	if isMonthAndDay(text) { // "June 25, 2010"
		end = indexByte(rest, ',')
		text += " " + strings.TrimSpace(string(cut(rest[:end], 64)))
		rest = rest[min(len(rest), end+1):]
	}
	text = zones.Replace(strings.Trim(text, `"'`))
	for _, form := range dates {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), rest
		}
	}
	return time.Time{}, rest
}

func isMonthAndDay(text string) bool {
	_, short := time.Parse("Jan 2", text)
	_, long := time.Parse("January 2", text)
	return short == nil || long == nil
}

// isWeekday reports whether text is the name of a day, short or long.
func isWeekday(text string) bool {
	if _, err := time.Parse("Mon", text); err == nil {
		return true
	}
	_, err := time.Parse("Monday", text)
	return err == nil
}
