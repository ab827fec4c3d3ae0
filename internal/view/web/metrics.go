package web

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"kumo/internal/base/stats"
	"kumo/internal/state/stall"
)

// severalMetrics collects the metrics of several crawls, with the label crawl, and those of their process.
type severalMetrics struct{ src Several }

// Describe implements prometheus.Collector, and sends nothing.
func (severalMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m severalMetrics) Collect(all chan<- prometheus.Metric) {
	for _, src := range m.src.Crawls() {
		metrics{src: src, labels: []string{"crawl", src.Name}}.Collect(all)
	}
	c, to := m.src.Leases(), exposition{all: all}
	to.counter("visits_with_lease_total", "Requests made with the lease of a host, while several crawls were active.",
		float64(c.Visits))
	to.counter("visits_without_lease_total", "Requests made while only one crawl was active.", float64(c.Open))
	to.counter("lease_reads_total", "Reads of records of hosts.", float64(c.Reads))
	to.counter("lease_writes_total", "Writes of records of hosts.", float64(c.Writes))
	to.counter("lease_messages_total", "Messages for leases of hosts.", float64(c.Messages))
}

// metrics collects the metrics of a source. It describes none in advance, so that Prometheus accepts sinks, filters and
// kinds of failures that appear later.
type metrics struct {
	src    Source
	labels []string // names and values, alternating
}

// Describe implements prometheus.Collector, and sends nothing.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m metrics) Collect(all chan<- prometheus.Metric) {
	to := exposition{all, m.labels}
	to.crawl(&m.src)
	if m.src.Filters != nil {
		to.filters(m.src.Filters())
	}
	if m.src.Forecast != nil {
		to.outlook(&m.src)
	}
	if m.src.Sinks != nil {
		to.sinks(m.src.Sinks())
	}
	to.place(&m.src)
	if m.src.Disk != nil {
		free, least := m.src.Disk()
		to.gauge("disk_free_bytes", "Bytes free on the disk of the crawl's folder.", float64(free))
		to.gauge("disk_min_free_bytes", "Bytes that must stay free; with fewer the crawl pauses. 0: no limit.",
			float64(least))
	}
	if m.src.Lease != nil {
		l := m.src.Lease()
		to.gauge("lease_seconds", "Time until the node's lease ends; 0 if it has none.", l.Left.Seconds())
		to.counter("lease_expirations_total", "Times that the lease was not renewed in time.", float64(l.Expired))
		to.counter("declared_dead_total", "Times that the other nodes declared this one dead.", float64(l.Lost))
	}
	if m.src.Placement != nil {
		to.placement(m.src.Placement())
	}
	if m.src.Again != nil {
		to.gauge("pages_fetched_again", "Pages of dead nodes whose records were lost, found by this process.",
			float64(m.src.Again()))
	}
}

// metricsWhile collects the metrics of a source only while it is open.
type metricsWhile struct {
	metrics
	isOpen func() bool
}

// Collect implements prometheus.Collector.
func (m metricsWhile) Collect(all chan<- prometheus.Metric) {
	if m.isOpen() {
		m.metrics.Collect(all)
	}
}

// An exposition sends metrics; names and values of labels alternate in arguments.
type exposition struct {
	all    chan<- prometheus.Metric
	common []string // labels of all metrics
}

func (to exposition) counter(name, help string, value float64, labels ...string) {
	to.put(prometheus.CounterValue, name, help, value, labels)
}

func (to exposition) gauge(name, help string, value float64, labels ...string) {
	to.put(prometheus.GaugeValue, name, help, value, labels)
}

func (to exposition) put(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	var names, values []string
	labels = slices.Concat(to.common, labels)
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	desc := prometheus.NewDesc("kumo_"+name, help, names, nil)
	to.all <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (to exposition) crawl(src *Source) {
	t, o, f := src.Totals(), src.Outage(), src.Frontier()
	to.counter("pages_total", "URLs answered, with any status.", float64(t.Pages))
	to.counter("bytes_total", "Bytes received over the wire.", float64(t.Bytes))
	to.counter("failures_total", "URLs without an answer.", float64(t.Failed))
	to.counter("retries_total", "Visits that were retried.", float64(t.Retries))
	to.counter("duplicates_total", "Pages with a payload seen before.", float64(t.Duplicates))
	to.counter("recrawls_total", "Answers for URLs that were visited before.", float64(t.Recrawls))
	to.counter("skipped_total", "URLs excluded by a rule.", float64(t.Skipped))
	to.counter("links_total", "Links found.", float64(t.Links))
	to.answers(src.Answers())
	to.counter("outages_total", "Times that none of the working hosts could be reached.", float64(o.Times))
	to.counter("outage_seconds_total", "Total time of these outages.", o.Total.Seconds())
	to.counter("out_of_sockets_total", "Connection attempts that failed because this machine had no file descriptor, "+
		"port or buffer.", float64(o.Scarce))
	to.gauge("cut_off", "1 while the crawl is offline and waits.", oneIf(o.Offline))
	to.gauge("urls_known", "Known URLs in scope.", float64(src.Known()))
	to.gauge("urls_waiting", "URLs in the frontier.", float64(f.URLs))
	to.gauge("hosts_active", "Hosts with an active request.", float64(f.Active))
	to.gauge("hosts_waiting", "Hosts that wait for their delay or a free worker.", float64(f.Waiting))
	to.gauge("hosts_backing_off", "Hosts that back off, after failures or at their request.", float64(f.Backing))
}

// classes are the classes of statuses. All are exposed from the beginning, so that rates can be computed.
var classes = []string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// answers exposes the outcomes of visits.
func (to exposition) answers(statuses map[int]int64, failures map[string]int64) {
	var sums [6]int64
	for status, n := range statuses {
		class := status / 100
		if class < 1 || class > 5 {
			class = 0
		}
		sums[class] += n
	}
	for class, n := range sums {
		to.counter("responses_total", "URLs answered, by class of status (1xx to 5xx, other).", float64(n),
			"class", classes[class])
	}
	for kind, n := range failures {
		to.counter("errors_total", "URLs without an answer, by kind of failure (dns, connect, tls, timeout, ...).",
			float64(n), "kind", kind)
	}
}

// filters exposes the answers of filter programs.
func (to exposition) filters(all []stats.FilterCounts) {
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.Filter] { // configured twice
			continue
		}
		seen[c.Filter] = true
		for point, p := range c.Points {
			answers := func(answer string, n int64) {
				to.counter("filter_answers_total", "Answers of filters, by filter, point (link, request, record) and "+
					"answer (yes, drop, change; none: the default was used, also counted under its answer).",
					float64(n),
					"filter", c.Filter, "point", point, "answer", answer)
			}
			answers("yes", p.Asked-p.Dropped-p.Changed)
			answers("drop", p.Dropped)
			answers("change", p.Changed)
			answers("none", p.Unanswered)
		}
		restarts := func(cause string, n int64) {
			to.counter("filter_restarts_total", "Restarts of filter processes, by filter and cause (crash, "+
				"timeout, nonsense).", float64(n), "filter", c.Filter, "cause", cause)
		}
		restarts("crash", c.Crashed)
		restarts("timeout", c.Late)
		restarts("nonsense", c.Nonsense)
	}
}

// outlook exposes the forecast and the reasons for stalls. Every kind of stall is always exposed, so that alerts can
// resolve.
func (to exposition) outlook(src *Source) {
	f, a := src.Forecast(), src.Stall()
	to.gauge("ends_in_at_least_seconds", "Minimum time until the queue is empty, set by the slowest host; 0 if "+
		"unknown.",
		f.AtLeast)
	to.gauge("queue_growth_per_second", "Growth of the queue in URLs per second, over the last minutes; negative if "+
		"it shrinks.", f.Growth)
	for _, kind := range stall.Kinds {
		to.gauge("stalled_seconds", "Time without answers although URLs are pending, by kind of reason; 0 if "+
			"not stalled.", oneIf(a.Kind == kind)*a.For.Seconds(), "kind", string(kind))
	}
}

// sinks exposes the progress of each sink.
func (to exposition) sinks(all []stats.Sink) {
	for i := range all {
		s := &all[i]
		to.counter("sink_records_total", "Records that a sink accepted in this run.", float64(s.Sent), "sink", s.Sink)
		to.counter("sink_bytes_total", "Approximate bytes of these records.", float64(s.Bytes), "sink", s.Sink)
		to.counter("sink_failures_total", "Failed attempts to reach a sink, or to send it records.",
			float64(s.Failures), "sink", s.Sink)
		to.counter("sink_retries_total", "Retries after such failures.", float64(s.Retries), "sink", s.Sink)
		to.gauge("sink_records_waiting", "Records in the crawl's files that are pending for a sink.",
			float64(s.Waiting), "sink",
			s.Sink)
		to.gauge("sink_behind_seconds", "Time since the visit of the first record that is pending for a sink.",
			s.Behind, "sink",
			s.Sink)
		to.gauge("sink_failing", "1 while a sink accepts no records and is retried.", oneIf(s.Why != ""), "sink",
			s.Sink)
	}
}

// placement exposes how hosts were assigned to this node. The speed and srcuse of the DSpider paper follow from
// kumo_pages_total and kumo_bytes_total.
func (to exposition) placement(p *stats.Placement) {
	if p == nil {
		return
	}
	to.counter("duplicate_fetches_total", "Pages that another node had fetched, too, when it handed over their hosts.",
		float64(p.Duplicates))
	if p.ConnectTimeout == 0 {
		return
	}
	to.counter("host_requests_total", "Requests about hosts that this node has handled as the control unit, and answers.",
		float64(p.HostRequests))
	to.gauge("connect_timeout_seconds", "Timeout of a first connection to a host.", p.ConnectTimeout)
	to.gauge("connect_timeout_min_seconds", "Lower bound of that timeout, for a busy node.", p.MinConnectTimeout)
	to.gauge("connect_timeout_max_seconds", "Upper bound of that timeout, for a node with little work.",
		p.MaxConnectTimeout)
}

// place exposes the uploads of files and states to the crawl's storage location, if it has one.
func (to exposition) place(src *Source) {
	if src.Uploads != nil {
		u := src.Uploads()
		to.gauge("place_files_waiting", "Closed record files that are not yet uploaded.", float64(u.Waiting))
		to.gauge("place_bytes_waiting", "Bytes of these files.", float64(u.WaitSize))
		to.gauge("place_files", "Files in the storage location.", float64(u.Files))
		to.gauge("place_bytes", "Bytes of these files.", float64(u.Bytes))
		to.gauge("place_failing", "1 while uploads fail and are retried.", oneIf(u.Why != ""))
	}
	if src.States != nil {
		s := src.States()
		to.gauge("place_checkpoints", "Checkpoints of the state that this process has uploaded.",
			float64(s.Checkpoints))
		to.gauge("place_journal_cut_bytes", "Bytes of the journal that the servers have dropped after a checkpoint.",
			float64(s.CutBytes))
		to.gauge("place_journal_kept_bytes", "Bytes of the journal that the servers keep.", float64(s.Kept))
		to.gauge("place_files_lacking", "Record files that are neither in the folder nor in the storage location.",
			float64(s.MissingCount))
	}
}
