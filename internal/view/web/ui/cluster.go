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

// A cluster is a crawl's, as it is shown: all who look see what was found last.
type cluster struct {
	src   inspect.ClusterSource
	where string
	done  context.Context
	hub   hub

	mu       sync.Mutex    // guards below
	querying chan struct{} // closed when it was looked; nil: nobody does
	stale    bool          // what is found is old when it is found
	last     *clusterSnapshot
	tried    time.Time // when it was looked last
	took     time.Duration
	failed   error // of that
}

// A clusterSnapshot is a cluster as it was found.
type clusterSnapshot struct {
	*inspect.Cluster
	words  []Word
	events []Event // the newest first
}

const (
	clusterInterval = 2 * time.Second  // about as often as nodes tell how they are
	clusterTimeout  = 15 * time.Second // for one look
	maxEvents       = 100
	defaultNodes    = 100              // of a page
	oldSnapshot     = 20 * time.Second // after which it is said how old a look is
	clusterShare    = 10               // looking takes one part in so many of the time at most
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
	_ = c.src.Close() // it was only read
}

// look is how the cluster is, as it was found a moment ago. While somebody looks, and while it does not answer, it is
// as it was last; of one that does not answer this is said.
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
		enough = patience.C // as it was last will do
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

// query looks, whoever waits for it, and closes found.
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
	old := Word{levelWarning, fmt.Sprintf("This is how it was %s ago: the cluster is being asked",
		stats.Span(time.Since(x.Time))), ""}
	if c.failed != nil {
		old = Word{levelProblem,
			fmt.Sprintf("The cluster does not answer; this is how it was %s ago: %v", stats.Span(time.Since(x.Time)), c.failed),
			"It is asked again and again. kumo status --crawl says which servers are away."}
	}
	x.words = append([]Word{old}, x.words...)
	return &x, nil
}

// invalidate has the cluster looked at anew by who asks next.
func (c *cluster) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried, c.stale = time.Time{}, true
}

// clusterNotices say what is wrong with a cluster, and what is to be expected of it.
func clusterNotices(all *inspect.Cluster) []Word {
	words := []Word{}
	if all.Trouble != "" {
		words = append(words, Word{levelProblem, "Too few servers run, and nothing goes on; this is how it was " +
			all.LastHeard(), all.Trouble})
	}
	if all.State == "waiting" {
		words = append(words, Word{levelInfo, "The crawl was not started yet", "kumo start --crawl " + all.Crawl +
			" begins it, with URLs and settings"})
	}
	notes := all.Notes()
	for i, note := range notes {
		if i == maxNotes {
			words = append(words, Word{levelWarning, fmt.Sprintf("%d notes more", len(notes)-i), "kumo status --crawl has all"})
			break
		}
		words = append(words, Word{Level: levelWarning, What: note})
	}
	if line := all.Forecast(); line != "" {
		words = append(words, Word{Level: levelInfo, What: line})
	}
	return words
}

const maxNotes = 10

// An Event is something that has happened in a cluster.
type Event struct {
	Time time.Time `json:"time"`
	What string    `json:"what"`
	By   string    `json:"by,omitempty"` // of what somebody has had the crawl do
}

// recentEvents are the last events, with what people have had the crawl do, the newest first.
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

// clusterLiveValues is what of a cluster changes while a page is open.
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

// others says how many nodes are no members, by what they are.
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
	return "being settled: hosts change owner"
}

func gathered(x *inspect.Cluster) string {
	g := x.Gathered
	if g == nil {
		return ""
	}
	return fmt.Sprintf("as %s has gathered it, %.0f s ago", g.By, g.Age)
}

// event is what is told to pages that are open.
func (c *cluster) event(ctx context.Context) (data []byte, more bool) {
	x, err := c.snapshot(ctx)
	if err != nil {
		return nil, true
	}
	data, err = json.Marshal(event{clusterLiveValues(x.Cluster), x.words, true})
	return data, err == nil
}

var errNoCluster = &problem{http.StatusNotFound, "This crawl has one node",
	"there is a cluster on the page of a node (kumo node --ui), or of a cluster (kumo serve --crawl)"}

// clustered returns the crawl that a path names, if it has a cluster.
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

// A clusterAnswer is a cluster, with some of its nodes.
type clusterAnswer struct {
	inspect.Cluster
	Nodes  []inspect.Node `json:"nodes"`          // by name
	Next   string         `json:"next,omitempty"` // give it as "after" to go on
	Words  []Word         `json:"words"`
	Events []Event        `json:"events"` // the newest first
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

// someNodes are the first nodes behind one, by name and identity, and the one to go on behind.
func someNodes(x *inspect.Cluster, after string, n int) (some []inspect.Node, next string) {
	return pageOfList(orEmpty(x.Nodes), func(n inspect.Node) string { return n.Name + " " + n.Node }, after, n)
}
