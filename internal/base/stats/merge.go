package stats

import (
	"maps"
	"slices"
)

// Merge returns one report of all nodes of a crawl. Counts are sums. The number of hosts outside the crawl is that of
// the hosts named in any report, or of the largest report. Rates are those of the time from the first start to the last
// stop. Counts of field rules, filters and sinks are only in the nodes' own reports.
func Merge(reports []*Report) *Report {
	all := &Report{Statuses: map[int]int64{}, Types: map[string]int64{}, Errors: map[string]int64{},
		Skipped: map[string]int64{}, Usage: map[string]int64{}, OffTop: map[string]int64{}}
	times := map[string]SlowHost{}
	for _, r := range reports {
		if all.Started.IsZero() || r.Started.Before(all.Started) {
			all.Started = r.Started
		}
		if r.Stopped.After(all.Stopped) {
			all.Stopped = r.Stopped
		}
		all.addCounts(r)
		addAll(all.Statuses, r.Statuses)
		addAll(all.Types, r.Types)
		addAll(all.Errors, r.Errors)
		addAll(all.Skipped, r.Skipped)
		addAll(all.Usage, r.Usage)
		addAll(all.OffTop, r.OffTop)
		all.OffHosts = max(all.OffHosts, r.OffHosts)
		for _, h := range r.Slowest {
			was := times[h.Host]
			sum := was.Seconds*float64(was.Pages) + h.Seconds*float64(h.Pages)
			if was.Pages += h.Pages; was.Pages > 0 {
				was.Seconds = sum / float64(was.Pages)
			}
			was.Host = h.Host
			times[h.Host] = was
		}
	}
	all.OffHosts = max(all.OffHosts, len(all.OffTop))
	all.OffTop = top(all.OffTop, offTop)
	hosts := slices.SortedFunc(maps.Values(times), bySlowness)
	all.Slowest = hosts[:min(len(hosts), slowest)]
	if all.Seconds = all.Stopped.Sub(all.Started).Seconds(); all.Seconds > 0 {
		all.PagesPerSecond = float64(all.PagesThisRun) / all.Seconds
		all.BytesPerSecond /= all.Seconds
	}
	return all
}

// addCounts adds the numbers of another report. BytesPerSecond becomes the number of bytes of the runs.
func (r *Report) addCounts(o *Report) {
	r.Pages += o.Pages
	r.PagesThisRun += o.PagesThisRun
	r.Bytes += o.Bytes
	r.BytesPerSecond += o.BytesPerSecond * o.Seconds
	r.Duplicates += o.Duplicates
	r.Recrawls += o.Recrawls
	r.Failed += o.Failed
	r.Retries += o.Retries
	r.RobotsFetched += o.RobotsFetched
	r.Links += o.Links
	r.LinksCut += o.LinksCut
	r.NeedsScript += o.NeedsScript
	r.Rendered += o.Rendered
	r.Rendering = r.Rendering.merge(o.Rendering)
	r.Documents = r.Documents.Merge(o.Documents)
	r.Known += o.Known
	r.Waiting += o.Waiting
	r.PendingDedup += o.PendingDedup
	r.Abandoned += o.Abandoned
	r.Hosts += o.Hosts
	r.Refused += o.Refused
	r.HostsAnswered += o.HostsAnswered
	r.HostsAbandoned += o.HostsAbandoned
	r.HostsFailed += o.HostsFailed
	r.Outages += o.Outages
	r.OutageSeconds += o.OutageSeconds
	r.OutOfSockets += o.OutOfSockets
	r.Cookies += o.Cookies
	r.CookiesEvicted += o.CookiesEvicted
	r.OffLinks += o.OffLinks
}

func addAll[K comparable](to, from map[K]int64) {
	for k, n := range from {
		to[k] += n
	}
}

// WithoutState removes what a node that is gone has passed on to others: its URLs, hosts and cookies.
func (r *Report) WithoutState() {
	r.Known, r.Waiting, r.PendingDedup, r.Hosts, r.Cookies, r.Abandoned = 0, 0, 0, 0, 0, 0
}

// sharedTop is the number of entries that a shared report has of each list.
const sharedTop = 100

// Shorten removes the parts of a report that other nodes do not need, and the end of long lists.
func (r *Report) Shorten() {
	r.Fields, r.Filters, r.Sinks, r.Journal = nil, nil, nil, 0
	r.Types, r.Errors, r.Skipped = top(r.Types, sharedTop), top(r.Errors, sharedTop), top(r.Skipped, sharedTop)
	r.OffTop = top(r.OffTop, sharedTop)
}
