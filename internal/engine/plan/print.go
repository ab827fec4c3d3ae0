package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"kumo/internal/base/stats"
)

const (
	maxRows         = 20 // hosts in the table
	maxListedErrors = 20 // invalid seeds and failed hosts that are listed one by one
)

// Print writes the estimated plan as text.
func (p *Plan) Print(w io.Writer) {
	fmt.Fprintf(w, "%s on %s; %s for robots.txt and sitemaps in %v, and nothing else was fetched\n\n",
		stats.Count(p.Seeds, "seeds"), stats.Count(len(p.Hosts)+p.Left, "hosts"), stats.Count(p.Requests, "requests"),
		p.Took.Round(100*time.Millisecond))
	p.printHosts(w)
	p.printTrouble(w)
	p.printSum(w)
}

func (p *Plan) printHosts(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	row("host", "allowed", "delay", "sitemaps", "URLs", "in scope", "allowed", "pages", "size", "time", "by")
	shown := 0
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if h.Allowed == NoReply {
			continue
		}
		if shown++; shown > maxRows {
			continue
		}
		pages, size, takes := "?", "?", "?"
		if h.Pages != nil {
			pages, size, takes = fmt.Sprint(*h.Pages), stats.Bytes(h.Bytes), stats.Span(inSeconds(*h.Seconds))
		}
		row(h.Host, h.Allowed, delayWord(h), sitemapsWord(&h.Sitemaps), fmt.Sprint(h.Sitemaps.URLs),
			fmt.Sprint(h.Sitemaps.InScope), fmt.Sprint(h.Sitemaps.Allowed), pages, size, takes, h.PagesBy)
	}
	if shown == 0 {
		return
	}
	s := &p.Sum
	if s.Pages > 0 {
		row(fmt.Sprintf("all %d", s.Hosts), "", "", "", "", "", "", fmt.Sprint(s.Pages), stats.Bytes(s.Bytes),
			stats.Span(inSeconds(s.Seconds)), s.Limit)
	}
	_ = t.Flush() // errors are ignored, as for the other output
	if shown > maxRows {
		fmt.Fprintf(w, "(the %d slowest of %d hosts; --json has all)\n", maxRows, shown)
	}
	fmt.Fprintln(w)
}

func delayWord(h *Host) string {
	text := stats.Span(inSeconds(h.Delay))
	if h.DelayBy != "--delay" {
		text += " (" + h.DelayBy
		if h.CrawlDelay > h.Delay {
			text += "; it asks for " + stats.Span(inSeconds(h.CrawlDelay))
		}
		return text + ")"
	}
	return text
}

func sitemapsWord(s *Sitemaps) string {
	text := fmt.Sprint(s.Read)
	if s.Left > 0 {
		text += fmt.Sprintf(" of %d", s.Read+s.Left+s.Failed)
	}
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	return text
}

// printTrouble lists invalid seeds, unreachable hosts, lines that forbid seeds, and notes.
func (p *Plan) printTrouble(w io.Writer) {
	section := func(head string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintln(w, head)
		for _, line := range lines[:min(len(lines), maxListedErrors)] {
			fmt.Fprintln(w, "  "+line)
		}
		if more := len(lines) - maxListedErrors; more > 0 {
			fmt.Fprintf(w, "  and %d more\n", more)
		}
		fmt.Fprintln(w)
	}
	var bad, gone, forbidden, notes []string
	for _, b := range p.Bad {
		where := ""
		if b.Line > 0 {
			where = fmt.Sprintf("line %d: ", b.Line)
		}
		bad = append(bad, fmt.Sprintf("%s%q: %s", where, b.Text, b.Why))
	}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		switch {
		case h.Allowed == NoReply:
			gone = append(gone, fmt.Sprintf("%s: %s: %s", h.Host, h.Failure, h.Error))
		case h.Rule != nil && h.Rule.Number > 0:
			forbidden = append(forbidden, fmt.Sprintf("%s: line %d, %q, forbids %s", h.Host, h.Rule.Number, h.Rule.Text,
				h.Rule.URL))
		case h.Rule != nil:
			forbidden = append(forbidden, fmt.Sprintf("%s: %s: %s", h.Host, h.Rule.Text, h.Rule.URL))
		}
		if h.Note != "" {
			notes = append(notes, h.Host+": "+h.Note)
		}
	}
	section("invalid seeds:", bad)
	section("unreachable hosts; a crawl retries them, then abandons them for its run:", gone)
	section("seeds that the crawl would filter:", forbidden)
	section("notes:", notes)
	if p.Left > 0 {
		fmt.Fprintf(w, "%s not queried: the survey was stopped\n\n", stats.Count(p.Left, "hosts were"))
	}
}

func (p *Plan) printSum(w io.Writer) {
	s, a := &p.Sum, &p.Sum.Assumed
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	more := ""
	if s.Unknown > 0 {
		more = fmt.Sprintf(", without %s of unknown size", stats.Count(s.Unknown, "hosts"))
	}
	if s.Limit != "" {
		more = " by " + s.Limit
	}
	row("pages", "%d%s", s.Pages, more)
	row("size", "%s over the wire, at %s a page: %s", stats.Bytes(s.Bytes), stats.Bytes(a.PageBytes), a.BytesFrom)
	switch {
	case s.Seconds == 0 && s.Unknown > 0:
		row("time", "unknown")
	case s.Seconds == 0:
		row("time", "none: there is nothing to fetch")
	case s.Unknown > 0 && s.Limit == "":
		row("time", "at least %s for the known pages; %s", stats.Span(inSeconds(s.Seconds)), p.boundBy())
	default:
		row("time", "at least %s; %s", stats.Span(inSeconds(s.Seconds)), p.boundBy())
	}
	enough := fmt.Sprintf("-c %d is enough", s.Concurrency)
	if a.Hosts < s.Concurrency {
		enough += fmt.Sprintf("; with -c %d hosts wait for each other", a.Hosts)
	} else {
		enough += fmt.Sprintf(" (it is %d)", a.Hosts)
	}
	row("at once", "%s", enough)
	row("memory", "any: queues and known URLs beyond --memory are on disk; %s would hold all", stats.Bytes(s.memory()))
	row("disk", "%s, at %s a page with the crawl's state", stats.Bytes(s.Disk), stats.Bytes(a.DiskBytes))
}

// boundBy describes what determines the duration.
func (p *Plan) boundBy() string {
	for i := range p.Hosts {
		if h := &p.Hosts[i]; h.Host == p.Sum.By && h.Pages != nil {
			return fmt.Sprintf("the last is %s, with %s at %s each", h.Host, stats.Count(*h.Pages, "pages"),
				stats.Span(inSeconds(h.each(p.Sum.Assumed.PerHost))))
		}
	}
	return "it ends by " + p.Sum.By
}

// urlMemory is the memory of a known or pending URL, in bytes.
const urlMemory = 400

// memory returns the value of --memory with which all URLs fit in memory: seven eighths of it are for them.
func (s *Sum) memory() int64 { return max(64<<20, s.Pages*urlMemory*8/7) }

func inSeconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * float64(time.Second)) }
