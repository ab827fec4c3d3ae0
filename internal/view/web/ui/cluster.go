package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
	"kumo/internal/state/forecast"
)

// A cluster queries the cluster of a crawl. All requests share the last snapshot.
type cluster struct {
	src   inspect.ClusterSource
	where string
	done  context.Context
	hub   hub

	mu       sync.Mutex    // guards the fields below
	querying chan struct{} // closed at the end of the running query; nil: none runs
	stale    bool          // the result of the running query is outdated
	last     *clusterSnapshot
	tried    time.Time // end of the last query
	took     time.Duration
	failed   error // error of the last query
}

// A clusterSnapshot is the result of a query.
type clusterSnapshot struct {
	*inspect.Cluster
	words  []Word
	events []Event // newest first
}

const (
	clusterInterval = 2 * time.Second  // approximate interval of nodes' reports
	clusterTimeout  = 15 * time.Second // for one query
	maxEvents       = 100
	defaultNodes    = 100              // per page
	oldSnapshot     = 20 * time.Second // age from which a snapshot's age is displayed
	clusterShare    = 10               // queries take at most one part in this many of the time
)

func newCluster(done context.Context, c Crawl) *cluster {
	x := &cluster{src: c.Cluster, where: c.Location, done: done}
	x.hub.interval, x.hub.done, x.hub.poll = clusterInterval, done, x.event
	return x
}

func (c *cluster) close() {
	c.mu.Lock()
	looking := c.querying
	c.mu.Unlock()
	if looking != nil {
		<-looking
	}
	_ = c.src.Close() // opened for reading only
}

// snapshot returns the state of the cluster, a moment old at most. While a query runs, and if the last one failed, it
// is the last known state, with a notice.
func (c *cluster) snapshot(ctx context.Context) (*clusterSnapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.tried)
	switch known := c.last != nil || c.failed != nil; {
	case known && (c.querying != nil || since < clusterInterval-100*time.Millisecond || since < clusterShare*c.took):
		return c.answer()
	case c.done.Err() != nil:
		return nil, c.done.Err()
	case c.querying == nil:
		c.querying, c.stale = make(chan struct{}), false
		go c.query(c.querying)
	}
	looking, known := c.querying, c.last != nil
	c.mu.Unlock()
	var enough <-chan time.Time
	if known {
		patience := time.NewTimer(clusterInterval)
		defer patience.Stop()
		enough = patience.C // the last known state suffices
	}
	select {
	case <-looking:
	case <-enough:
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.last == nil && c.failed == nil {
		return nil, cmp.Or(ctx.Err(), c.done.Err())
	}
	return c.answer()
}

// query updates the snapshot, independently of requests, and closes found.
func (c *cluster) query(found chan struct{}) {
	ctx, cancel := context.WithTimeout(c.done, clusterTimeout)
	defer cancel()
	begin := time.Now()
	all, err := c.src.Cluster(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(found)
	c.querying = nil
	c.tried, c.took, c.failed = time.Now(), min(time.Since(begin), clusterTimeout/clusterShare), err
	if c.stale {
		c.tried, c.took = time.Time{}, 0
	}
	if err == nil {
		c.last = &clusterSnapshot{all, clusterNotices(all), recentEvents(all)}
	}
}

func (c *cluster) answer() (*clusterSnapshot, error) {
	if c.failed == nil && (c.querying == nil || !c.last.Time.Before(time.Now().Add(-oldSnapshot))) {
		return c.last, nil
	}
	if c.last == nil {
		return nil, &problem{http.StatusServiceUnavailable, "The cluster does not answer", c.failed.Error()}
	}
	x := *c.last
	old := Word{levelWarning, fmt.Sprintf("This is the state %s ago: the cluster is being queried",
		stats.Span(time.Since(x.Time))), ""}
	if c.failed != nil {
		old = Word{levelProblem,
			fmt.Sprintf("The cluster does not answer; this is the state %s ago: %v", stats.Span(time.Since(x.Time)),
				c.failed),
			"The query is repeated. kumo status --crawl shows which servers are unreachable."}
	}
	x.words = append([]Word{old}, x.words...)
	return &x, nil
}

// invalidate makes the next request query the cluster again.
func (c *cluster) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried, c.stale = time.Time{}, true
}

// clusterNotices returns the problems and the forecast of a cluster.
func clusterNotices(all *inspect.Cluster) []Word {
	words := []Word{}
	if all.Trouble != "" {
		words = append(words, Word{levelProblem, "Too few servers run, so the cluster is stopped; this is the state " +
			all.LastHeard(), all.Trouble})
	}
	if all.State == "waiting" {
		words = append(words, Word{levelInfo, "The crawl has not been started", "kumo start --crawl " + all.Crawl +
			" starts it, with URLs and settings"})
	}
	notes := all.Notes()
	for i, note := range notes {
		if i == maxNotes {
			words = append(words, Word{levelWarning, fmt.Sprintf("%d more notes", len(notes)-i),
				"see kumo status --crawl for all"})
			break
		}
		words = append(words, Word{Level: levelWarning, What: note})
	}
	if line := all.Forecast(); line != "" {
		words = append(words, Word{Level: levelInfo, What: line})
	}
	if all.Measures != nil {
		words = append(words, Word{Level: levelInfo, What: "Measures: " + all.Measures.String()})
	}
	return words
}

const maxNotes = 10

// An Event is an event in a cluster.
type Event struct {
	Time time.Time `json:"time"`
	What string    `json:"what"`
	By   string    `json:"by,omitempty"` // user who made a change
}

// recentEvents returns the last events, including users' changes, newest first.
func recentEvents(x *inspect.Cluster) (all []Event) {
	for _, e := range x.Events {
		all = append(all, Event{e.Time, e.What, ""})
	}
	for _, c := range x.Changes {
		all = append(all, Event{c.Time, c.What, c.By})
	}
	slices.SortStableFunc(all, func(a, b Event) int { return b.Time.Compare(a.Time) })
	return all[:min(len(all), maxEvents)]
}

// clusterLiveValues returns the values that an open page updates.
func clusterLiveValues(x *inspect.Cluster) map[string]string {
	n := func(v int) string { return forecast.Grouped(int64(v)) }
	t := &x.Totals
	moved := int64(0)
	for i := range x.Nodes {
		moved += x.Nodes[i].Moved
	}
	return map[string]string{"state": x.State, "pages": forecast.Grouped(t.Pages), "rate": rate(t.Rate),
		"waiting": n(t.Waiting), "known": n(t.Known),
		"hosts": n(t.Hosts), "in-flight": n(t.InFlight), "members": n(members(x)), "others": others(x),
		"epoch":   fmt.Sprint(x.Epoch),
		"settled": settled(x), "leader": cmp.Or(x.Control, "–"), "moved": forecast.Grouped(moved), "outbox": n(t.Outbox),
		"gathered": gathered(x)}
}

func members(x *inspect.Cluster) (n int) {
	if x.Gathered != nil {
		return x.Gathered.Nodes
	}
	for i := range x.Nodes {
		if x.Nodes[i].Is == inspect.NodeMember {
			n++
		}
	}
	return n
}

// others returns the numbers of nodes that are not members, by role.
func others(x *inspect.Cluster) string {
	of := map[inspect.NodeRole]int{}
	for i := range x.Nodes {
		of[x.Nodes[i].Is]++
	}
	text := ""
	for _, is := range []inspect.NodeRole{inspect.NodeDead, inspect.NodeLeaving, inspect.NodeLeft, inspect.NodeJoining,
		inspect.NodeWaiting} {
		if of[is] > 0 {
			text += fmt.Sprintf("%d %s, ", of[is], is)
		}
	}
	return fmt.Sprintf("%s%d gone", text, x.Gone.Nodes)
}

func settled(x *inspect.Cluster) string {
	if x.Settled {
		return "settled"
	}
	return "not settled: hosts change owner"
}

func gathered(x *inspect.Cluster) string {
	g := x.Gathered
	if g == nil {
		return ""
	}
	return fmt.Sprintf("gathered by %s, %.0f s ago", g.By, g.Age)
}

// event returns the data that is sent to open pages.
func (c *cluster) event(ctx context.Context) (data []byte, more bool) {
	x, err := c.snapshot(ctx)
	if err != nil {
		return nil, true
	}
	data, err = json.Marshal(event{clusterLiveValues(x.Cluster), x.words, true})
	return data, err == nil
}

var errNoCluster = &problem{http.StatusNotFound, "This crawl has one node",
	"clusters are shown by the pages of nodes (kumo node --ui) and of clusters (kumo serve --crawl)"}

// clustered returns the crawl in a path if it has a cluster.
func (set *crawlSet) clustered(r *http.Request) (*crawl, error) {
	c, err := set.find(r)
	if err == nil && c.cluster == nil {
		err = errNoCluster
	}
	return c, err
}

// listenCluster streams events of a cluster.
func (h *crawlPages) listenCluster(w http.ResponseWriter, r *http.Request) {
	c, err := h.crawls.clustered(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	h.streams.send(w, r, c.queue, &c.cluster.hub, func(context.Context) (string, bool) { return "", true })
}

// A clusterAnswer is a cluster with some of its nodes.
type clusterAnswer struct {
	inspect.Cluster
	Nodes  []inspect.Node `json:"nodes"`          // by name
	Next   string         `json:"next,omitempty"` // value for "after" to continue
	Words  []Word         `json:"words"`
	Events []Event        `json:"events"` // newest first
}

func getCluster(c *crawl, r *http.Request, n int) (a clusterAnswer, err error) {
	x, err := c.cluster.snapshot(r.Context())
	if err != nil {
		return a, err
	}
	a = clusterAnswer{Cluster: *x.Cluster, Words: x.words, Events: orEmpty(x.events)}
	a.Nodes, a.Next = someNodes(x.Cluster, r.FormValue("after"), n)
	return a, nil
}

// someNodes returns up to n nodes after another one, by name and identity, and the value to continue with.
func someNodes(x *inspect.Cluster, after string, n int) (some []inspect.Node, next string) {
	return pageOfList(orEmpty(x.Nodes), func(n inspect.Node) string { return n.Name + " " + n.Node }, after, n)
}
