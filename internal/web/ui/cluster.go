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

	"kumo/internal/forecast"
	"kumo/internal/inspect"
	"kumo/internal/stats"
)

// A cluster is a crawl's, as it is shown: all who look see what was found last, and what has happened since this page is
// served.
type cluster struct {
	src   inspect.ClusterSource
	where string
	done  context.Context
	hub   hub
	ended chan struct{} // closed when nobody watches any more

	mu      sync.Mutex    // guards below
	looking chan struct{} // closed when it was looked; nil: nobody does
	again   bool          // what is found is old when it is found
	last    *clusterLook
	tried   time.Time // when it was looked last
	took    time.Duration
	failed  error // of that
	events  []Event
}

// A clusterLook is a cluster as it was found.
type clusterLook struct {
	*inspect.Cluster
	words  []Word
	events []Event // the newest first
}

const (
	clusterBeat  = 2 * time.Second  // about as often as nodes tell how they are
	quietBeat    = 10 * time.Second // where nobody watches: so that what happens then is seen, too
	clusterTime  = 15 * time.Second // for one look
	mostEvents   = 100
	usualNodes   = 100 // of a page
	clusterShare = 10  // looking takes one part in so many of the time at most
)

func newCluster(done context.Context, c Crawl) *cluster {
	x := &cluster{src: c.Cluster, where: c.Where, done: done, ended: make(chan struct{})}
	x.hub.beat, x.hub.done, x.hub.look = clusterBeat, done, x.news
	go x.watch()
	return x
}

// watch looks now and then, so that events are met.
func (c *cluster) watch() {
	defer close(c.ended)
	tick := time.NewTicker(quietBeat)
	defer tick.Stop()
	for {
		_, _ = c.look(c.done) // who shows it says so
		select {
		case <-tick.C:
		case <-c.done.Done():
			return
		}
	}
}

func (c *cluster) close() {
	<-c.ended
	c.mu.Lock()
	looking := c.looking
	c.mu.Unlock()
	if looking != nil {
		<-looking
	}
	_ = c.src.Close() // it was only read
}

// look is how the cluster is, as it was found a moment ago. While somebody looks, and while it does not answer, it is as
// it was last; of one that does not answer this is said.
func (c *cluster) look(ctx context.Context) (*clusterLook, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, known := time.Since(c.tried), c.last != nil || c.failed != nil
	switch {
	case known && (c.looking != nil || since < clusterBeat-100*time.Millisecond || since < clusterShare*c.took):
		return c.answer()
	case c.done.Err() != nil:
		return nil, c.done.Err()
	case c.looking == nil:
		c.looking, c.again = make(chan struct{}), false
		go c.find(c.looking)
	}
	looking := c.looking
	c.mu.Unlock()
	select {
	case <-looking:
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.last == nil && c.failed == nil {
		return nil, cmp.Or(ctx.Err(), c.done.Err())
	}
	return c.answer()
}

// lookSoon is look, for a list of which this is one.
func (c *cluster) lookSoon(ctx context.Context) (*clusterLook, error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	return c.look(ctx)
}

// find looks, whoever waits for it, and closes found.
func (c *cluster) find(found chan struct{}) {
	ctx, cancel := context.WithTimeout(c.done, clusterTime)
	defer cancel()
	begin := time.Now()
	all, err := c.src.Cluster(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(found)
	c.looking = nil
	c.tried, c.took, c.failed = time.Now(), min(time.Since(begin), clusterTime/clusterShare), err
	if c.again {
		c.tried, c.took = time.Time{}, 0
	}
	if err == nil {
		if c.last != nil {
			c.note(happened(c.last.Cluster, all))
		}
		c.last = &clusterLook{all, clusterWords(all), c.told(all.Changes)}
	}
}

func (c *cluster) answer() (*clusterLook, error) {
	if c.failed == nil {
		return c.last, nil
	}
	if c.last == nil {
		return nil, &problem{http.StatusServiceUnavailable, "The cluster does not answer", c.failed.Error()}
	}
	x := *c.last
	old := Word{levelWrong, fmt.Sprintf("The cluster does not answer; this is how it was %s ago: %v", stats.Span(time.Since(x.Time)), c.failed),
		"It is asked again and again. kumo status --crawl says which servers are away."}
	x.words = append([]Word{old}, x.words...)
	return &x, nil
}

// forget has the cluster looked at anew by who asks next.
func (c *cluster) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried, c.again = time.Time{}, true
}

// clusterWords say what is wrong with a cluster, and what is to be expected of it.
func clusterWords(all *inspect.Cluster) []Word {
	words := []Word{}
	if all.Trouble != "" {
		words = append(words, Word{levelWrong, "Too few servers run, and nothing goes on; this is how it was " + all.LastHeard(), all.Trouble})
	}
	if all.State == "waiting" {
		words = append(words, Word{levelInfo, "The crawl was not started yet", "kumo start --crawl " + all.Crawl + " begins it, with URLs and settings"})
	}
	notes := all.Notes()
	for i, note := range notes {
		if i == mostNotes {
			words = append(words, Word{levelLook, fmt.Sprintf("%d notes more", len(notes)-i), "kumo status --crawl has all"})
			break
		}
		words = append(words, Word{Level: levelLook, What: note})
	}
	if line := all.Forecast(); line != "" {
		words = append(words, Word{Level: levelInfo, What: line})
	}
	return words
}

const mostNotes = 10

// An Event is something that has happened in a cluster.
type Event struct {
	Time time.Time `json:"time"`
	What string    `json:"what"`
	By   string    `json:"by,omitempty"` // of what somebody has had the crawl do
}

func (c *cluster) note(news []Event) {
	all := append(c.events, news...)
	c.events = slices.Clone(all[max(len(all)-mostEvents, 0):])
}

// told are the events, with what people have had the crawl do, the newest first.
func (c *cluster) told(changes []inspect.Change) []Event {
	all := slices.Clone(c.events)
	for _, x := range changes {
		all = append(all, Event{x.Time, x.What, x.By})
	}
	slices.SortStableFunc(all, func(a, b Event) int { return b.Time.Compare(a.Time) })
	return all[:min(len(all), mostEvents)]
}

// happened is what has happened between two looks.
func happened(was, is *inspect.Cluster) (all []Event) {
	say := func(format string, args ...any) {
		all = append(all, Event{Time: is.Time, What: fmt.Sprintf(format, args...)})
	}
	if was.State != is.State {
		why := ""
		if is.Why != "" {
			why = " (" + is.Why + ")"
		}
		all = append(all, Event{Time: is.Since, What: fmt.Sprintf("the crawl is %s%s", is.State, why)})
	}
	if was.Control != is.Control && is.Control != "" && was.Control != "" {
		say("%s is the %s now, in place of %s", is.Control, is.LeaderWord(), was.Control)
	} else if was.Control != is.Control && is.Control != "" {
		say("%s is the %s now", is.Control, is.LeaderWord())
	}
	if listed(was) && listed(is) { // of many nodes some are listed, and others the next time
		nodesHappened(was, is, say)
	}
	if is.Settled && (!was.Settled || was.Epoch != is.Epoch) && is.Epoch > 0 {
		say("epoch %d is settled: all members have what is theirs", is.Epoch)
	}
	return all
}

func listed(c *inspect.Cluster) bool { return c.Gathered == nil || c.Gathered.Nodes <= len(c.Nodes) }

func nodesHappened(was, is *inspect.Cluster, say func(string, ...any)) {
	before := map[string]*inspect.Node{}
	for i := range was.Nodes {
		before[was.Nodes[i].Node] = &was.Nodes[i]
	}
	for i := range is.Nodes {
		n := &is.Nodes[i]
		old := before[n.Node]
		delete(before, n.Node)
		if old == nil {
			say("%s is %s", n.Name, map[inspect.Standing]string{inspect.NodeWaiting: "there, and waits", inspect.NodeJoining: "joining",
				inspect.NodeMember: "a member", inspect.NodeLeaving: "leaving", inspect.NodeDead: "dead", inspect.NodeLeft: "about to be gone"}[n.Is])
			continue
		}
		if old.Is != n.Is {
			say("%s", standingWords(n))
		}
		switch {
		case isSilent(n) && !isSilent(old):
			say("%s is not heard of: it is dead, or cut off from the others", n.Name)
		case isSilent(old) && !isSilent(n) && n.Is == inspect.NodeMember:
			say("%s is heard of again", n.Name)
		case n.CutOff > 0 && old.CutOff == 0:
			say("%s reaches nothing on the web", n.Name)
		case n.CutOff == 0 && old.CutOff > 0 && n.Is == inspect.NodeMember:
			say("%s reaches the web again", n.Name)
		}
	}
	for _, n := range was.Nodes {
		if before[n.Node] == nil {
			continue
		}
		switch n.Is {
		case inspect.NodeDead:
			say("what %s had was taken over", n.Name)
		case inspect.NodeLeaving, inspect.NodeLeft:
			say("%s has left", n.Name)
		case inspect.NodeWaiting, inspect.NodeJoining:
			say("%s is gone", n.Name)
		default:
			if isSilent(&n) {
				say("%s has died: it was given up, and others have what it had", n.Name)
				continue
			}
			say("%s is gone: it has left, or was given up, and others have what it had", n.Name)
		}
	}
}

// silence is after how many seconds a node is not heard of: four times as long as it takes to tell of itself.
const silence = 8

func isSilent(n *inspect.Node) bool { return n.Is == inspect.NodeMember && n.Age > silence }

func standingWords(n *inspect.Node) string {
	switch n.Is {
	case inspect.NodeMember:
		return n.Name + " is a member"
	case inspect.NodeLeaving:
		return n.Name + " leaves: it hands over what it has"
	case inspect.NodeDead:
		return n.Name + " has died: it was given up, and the others take over what it had"
	case inspect.NodeLeft:
		return n.Name + " has handed over all that it had"
	case inspect.NodeWaiting:
		return n.Name + " waits for the start"
	}
	return n.Name + " joins"
}

// clusterLive is what of a cluster changes while a page is open.
func clusterLive(x *inspect.Cluster) map[string]string {
	n := func(v int) string { return forecast.Grouped(int64(v)) }
	t := &x.Totals
	moved := int64(0)
	for i := range x.Nodes {
		moved += x.Nodes[i].Moved
	}
	return map[string]string{"state": x.State, "pages": forecast.Grouped(t.Pages), "rate": rate(t.Rate), "waiting": n(t.Waiting), "known": n(t.Known),
		"hosts": n(t.Hosts), "in-flight": n(t.InFlight), "members": n(members(x)), "others": others(x), "epoch": fmt.Sprint(x.Epoch),
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
	of := map[inspect.Standing]int{}
	for i := range x.Nodes {
		of[x.Nodes[i].Is]++
	}
	text := ""
	for _, is := range []inspect.Standing{inspect.NodeDead, inspect.NodeLeaving, inspect.NodeLeft, inspect.NodeJoining, inspect.NodeWaiting} {
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

// news is what is told to pages that are open.
func (c *cluster) news(ctx context.Context) (data []byte, more bool) {
	x, err := c.look(ctx)
	if err != nil {
		return nil, true
	}
	data, err = json.Marshal(event{clusterLive(x.Cluster), x.words, true})
	return data, err == nil
}

var errNoCluster = &problem{http.StatusNotFound, "This crawl has one node", "there is a cluster on the page of a node (kumo node --ui), or of a cluster (kumo serve --crawl)"}

// clusterOf is the cluster of the crawl that a path names.
func (s *Server) clusterOf(r *http.Request) (*crawl, error) {
	c, err := s.of(r)
	if err == nil && c.cluster == nil {
		err = errNoCluster
	}
	return c, err
}

// listenToCluster answers with events of a cluster.
func (s *Server) listenToCluster(w http.ResponseWriter, r *http.Request) {
	c, err := s.clusterOf(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.tell(w, r, c.queue, &c.cluster.hub, func(context.Context) (string, bool) { return "", true })
}

// A clusterAnswer is a cluster, with some of its nodes.
type clusterAnswer struct {
	inspect.Cluster
	Nodes  []inspect.Node `json:"nodes"`          // by name
	Next   string         `json:"next,omitempty"` // give it as "after" to go on
	Words  []Word         `json:"words"`
	Events []Event        `json:"events"` // the newest first
}

func (s *Server) giveCluster(r *http.Request) (any, error) {
	c, err := s.clusterOf(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	x, err := c.cluster.look(r.Context())
	if err != nil {
		return nil, err
	}
	a := clusterAnswer{Cluster: *x.Cluster, Words: x.words, Events: orEmpty(x.events)}
	a.Nodes, a.Next = someNodes(x.Cluster, r.FormValue("after"), n)
	return a, nil
}

// someNodes are the first nodes behind one, by name and identity, and the one to go on behind.
func someNodes(x *inspect.Cluster, after string, n int) (some []inspect.Node, next string) {
	some = orEmpty(x.Nodes)
	if after != "" {
		i, there := slices.BinarySearchFunc(some, after, func(n inspect.Node, after string) int { return cmp.Compare(nodeKey(&n), after) })
		if there {
			i++
		}
		some = some[i:]
	}
	if len(some) > n {
		some = some[:n]
		next = nodeKey(&some[n-1])
	}
	return some, next
}

// nodeKey is by what nodes are in order.
func nodeKey(n *inspect.Node) string { return n.Name + " " + n.Node }
