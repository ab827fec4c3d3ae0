package stats

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// MaxReport is the maximum size of report.json, in bytes.
const MaxReport = 64 << 20

// A Report has the results of a crawl. Counts cover the whole crawl; times and rates cover this run.
type Report struct {
	Crawl   string    `json:"crawl"`
	Ended   string    `json:"ended"` // "done", or the reason for an early stop
	Started time.Time `json:"started"`
	Stopped time.Time `json:"stopped"`
	Seconds float64   `json:"seconds"`

	Pages          int64   `json:"pages"`
	PagesThisRun   int64   `json:"pages_this_run"`
	Bytes          int64   `json:"bytes"`
	PagesPerSecond float64 `json:"pages_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	Duplicates     int64   `json:"duplicates"`
	Recrawls       int64   `json:"recrawls"` // revisited pages; included in Pages
	Failed         int64   `json:"failed"`
	Retries        int64   `json:"retries"`
	RobotsFetched  int64   `json:"robots_fetched"`
	Links          int64   `json:"links"`
	LinksCut       int64   `json:"links_cut"`    // pages with more links than were read
	NeedsScript    int64   `json:"needs_script"` // pages that show nothing without script
	Rendered       int64   `json:"rendered"`     // pages whose scripts were run in a browser
	Known          int     `json:"urls_known"`
	Waiting        int     `json:"urls_waiting"`
	// possibly known already; the next merge of the known URLs decides
	PendingDedup int `json:"urls_undecided"`
	// URLs abandoned with their hosts in this run; they are pending for the next run
	Abandoned int64 `json:"urls_given_up"`
	Hosts     int   `json:"hosts"` // known to the frontier
	// pending URLs of an earlier version or another node that are not fetchable
	Refused int `json:"urls_refused,omitempty"`

	// Of this run; http and https count separately:
	HostsAnswered  int64 `json:"hosts_answered"`
	HostsAbandoned int64 `json:"hosts_given_up"`
	HostsFailed    int64 `json:"hosts_given_up_after_answers"` // abandoned hosts that had answered before
	// number and total duration of network outages, during which the crawl waited
	Outages       int64   `json:"cut_offs"`
	OutageSeconds float64 `json:"cut_off_seconds"`
	// connections that failed because this machine had no file descriptor, port or buffer
	OutOfSockets int64 `json:"out_of_sockets"`

	// of this run; nil if no page was rendered
	Rendering *Rendering `json:"rendering,omitempty"`
	Documents *Documents `json:"documents,omitempty"` // of this run; nil: none were read

	Cookies        int64 `json:"cookies"`         // cookies in the jar
	CookiesEvicted int64 `json:"cookies_evicted"` // cookies evicted in this run for lack of space

	Journal uint64 `json:"journal"` // end of the journal to which the counts apply

	Statuses map[int]int64    `json:"statuses"`
	Types    map[string]int64 `json:"types"`
	Errors   map[string]int64 `json:"errors"`
	Skipped  map[string]int64 `json:"skipped"`
	// number of pages by usage preference, such as "train_ai=n"
	Usage    map[string]int64 `json:"usage,omitempty"`
	OffHosts int              `json:"off_hosts"` // number of hosts outside the crawl that are linked to
	OffLinks int64            `json:"off_links"`
	OffTop   map[string]int64 `json:"off_links_by_host"`
	Slowest  []SlowHost       `json:"slowest_hosts"`
	// by rule and host, of all runs; empty without rules
	Fields []FieldCounts `json:"fields,omitempty"`
	// of all runs; empty without filters
	Filters []FilterCounts `json:"filters,omitempty"`
	// of this run; empty without sinks
	Sinks []Sink `json:"sinks,omitempty"`
	// of this process; nil unless this is a node of a cluster with a control unit or master
	Placement *Placement `json:"placement,omitempty"`
}

// A SlowHost is a host with the mean time of its responses. If there are more hosts than are counted individually, its
// pages are counted only since it was last added.
type SlowHost struct {
	Host    string  `json:"host"`
	Pages   int64   `json:"pages"`
	Seconds float64 `json:"mean_seconds"`
}

const (
	slowest = 10
	offTop  = 1000
)

// Fill sets all fields that come from the counters; the numbers of known and pending URLs do not. pagesBefore and
// bytesBefore are the totals of earlier runs.
func (r *Report) Fill(s Snapshot, pagesBefore, bytesBefore int64) {
	r.Seconds = r.Stopped.Sub(r.Started).Seconds()
	r.Pages, r.PagesThisRun, r.Bytes = s.Pages, s.Pages-pagesBefore, s.Bytes
	if r.Seconds > 0 {
		r.PagesPerSecond = float64(r.PagesThisRun) / r.Seconds
		r.BytesPerSecond = float64(s.Bytes-bytesBefore) / r.Seconds
	}
	r.Recrawls = s.Recrawls
	r.Duplicates, r.Failed, r.Retries, r.RobotsFetched, r.Links = s.Duplicates, s.Failed, s.Retries, s.Robots, s.Links
	r.Abandoned, r.LinksCut, r.NeedsScript = s.Forsaken, s.LinksCut, s.NeedsScript
	r.Rendered = s.Rendered
	r.Statuses, r.Types, r.Errors, r.Skipped, r.Usage = s.Statuses, s.Types, s.Failures, s.Rules, s.Usage
	r.OffHosts, r.OffTop = len(s.Off), top(s.Off, offTop)
	for _, n := range s.Off {
		r.OffLinks += n
	}
	r.Slowest = slowHosts(s.Hosts)
}

// AbandonedMany reports whether so many hosts were abandoned that the run failed its purpose: more than a tenth of
// those that had answered, or more than half of all. A few dead hosts are normal.
func (r *Report) AbandonedMany() bool {
	return 10*r.HostsFailed > r.HostsAnswered || 2*r.HostsAbandoned > r.HostsAnswered+r.HostsAbandoned-r.HostsFailed
}

func slowHosts(hosts map[string]Host) []SlowHost {
	var all []SlowHost
	for name, h := range hosts {
		if h.Pages > 0 {
			all = append(all, SlowHost{name, h.Pages, h.mean()})
		}
	}
	slices.SortFunc(all, bySlowness)
	return all[:min(len(all), slowest)]
}

func bySlowness(a, b SlowHost) int {
	return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Host, b.Host))
}

// top returns the n largest entries.
func top(m map[string]int64, n int) map[string]int64 {
	if len(m) <= n {
		return m
	}
	kept := make(map[string]int64, n)
	for _, k := range ByCount(m)[:n] {
		kept[k] = m[k]
	}
	return kept
}

// ByCount returns the keys of counts, the largest count first.
func ByCount[K cmp.Ordered, N int | int64](m map[K]N) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

// Print prints the report as text.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s after %v\n", r.Crawl, r.Ended,
		time.Duration(r.Seconds*float64(time.Second)).Round(10*time.Millisecond))
	r.PrintCounts(w)
}

// PrintCounts prints the counts as text, one row each.
func (r *Report) PrintCounts(w io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("pages", "%d (%d in this run, %.1f/s), %d with a payload seen before", r.Pages, r.PagesThisRun, r.PagesPerSecond,
		r.Duplicates)
	if r.Recrawls > 0 {
		row("recrawls", "%d of the pages", r.Recrawls)
	}
	row("bytes", "%s (%s/s)", Bytes(r.Bytes), Bytes(int64(r.BytesPerSecond)))
	row("hosts", "%d; %s linked to", r.Hosts, Count(r.OffHosts, "hosts", "other"))
	if r.Outages > 0 {
		row("offline", "for %v in total", time.Duration(r.OutageSeconds*float64(time.Second)).Round(time.Second))
	}
	if r.CookiesEvicted > 0 {
		row("cookies", "%d kept, %d evicted for lack of space", r.Cookies, r.CookiesEvicted)
	}
	row("URLs", "%d known, %d pending, %s found", r.Known, r.Waiting, Count(r.Links, "links"))
	list(row, "statuses", r.Statuses)
	list(row, "types", r.Types)
	list(row, "errors", r.Errors)
	list(row, "excluded", r.Skipped)
	list(row, "usage", r.Usage)
	if r.LinksCut > 0 {
		row("links cut", "%s with more links than were read; links_cut in pages.jsonl has the limit (memory: see --memory)",
			Count(r.LinksCut, "pages"))
	}
	if r.NeedsScript > 0 {
		row("script", "%s %s nothing without JavaScript, which --render auto runs; needs_script in pages.jsonl names %s",
			Count(r.NeedsScript, "pages"), Either(r.NeedsScript, "shows", "show"), Either(r.NeedsScript, "it", "them"))
	}
	r.Rendering.print(row, r.Rendered)
	r.Documents.print(row)
	r.PrintFields(row)
	r.printFilters(row)
	if r.Abandoned > 0 {
		row("abandoned", "%s, with %s: the same command tries %s again", Count(r.Abandoned, "URLs"),
			Either(r.Abandoned, "its host", "their hosts"), Either(r.Abandoned, "it", "them"))
	}
	if r.Placement != nil {
		r.Placement.print(row, r.PagesThisRun, r.Seconds)
	}
	var slow []string
	for _, h := range r.Slowest[:min(3, len(r.Slowest))] {
		slow = append(slow, fmt.Sprintf("%s %.2fs", h.Host, h.Seconds))
	}
	if len(slow) > 0 {
		row("slowest", "%s", strings.Join(slow, ", "))
	}
}

const listed = 8

func list[K cmp.Ordered](row func(string, string, ...any), name string, m map[K]int64) {
	if len(m) == 0 {
		return
	}
	var parts []string
	keys := ByCount(m)
	for _, k := range keys[:min(listed, len(keys))] {
		label := fmt.Sprint(k)
		if label == "" {
			label = "(none)"
		}
		parts = append(parts, fmt.Sprintf("%s %d", label, m[k]))
	}
	if rest := len(keys) - listed; rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	row(name, "%s", strings.Join(parts, ", "))
}

// Count formats a number with its noun: "1 URL", "2 URLs", or with words in between "2 other hosts". things is the
// plural, formed with s.
func Count[N int | int32 | int64 | uint64](n N, things string, before ...string) string {
	return fmt.Sprintf("%d %s", n, strings.Join(append(before, Unit(n, things)), " "))
}

// Unit returns the noun for a number. The first word of things is a plural; it becomes singular if n is 1.
func Unit[N int | int32 | int64 | uint64](n N, things string) string {
	if n != 1 {
		return things
	}
	first, rest, more := strings.Cut(things, " ")
	if batch, ok := strings.CutSuffix(first, "ches"); ok {
		first = batch + "ch"
	} else {
		first = strings.TrimSuffix(first, "s")
	}
	if more {
		return first + " " + rest
	}
	return first
}

// Either returns one if n is 1, otherwise many.
func Either[N int | int32 | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Bytes formats a number of bytes: "27.4 MB".
func Bytes(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit && prefix < 4 {
		value, prefix = value/unit, prefix+1
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGTP"[prefix])
}
