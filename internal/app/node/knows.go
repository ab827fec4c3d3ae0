package node

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// Who adds URLs asks all members which of them are known already. Each answers for the hosts that it owns.

type knowQuestion struct {
	ID   uint64   `json:"id"`
	URLs []string `json:"urls"`
}

// A knowAnswer has a letter for each URL of a question.
type knowAnswer struct {
	ID    uint64 `json:"id"`
	Say   string `json:"say"`
	Links int    `json:"links,omitempty"` // where one URL was asked about: that wait for its host's owner to be known
}

// The letters.
const (
	sayOthers = '-' // the host is not the node's
	sayNew    = 'n'
	sayKnown  = 'k'
)

// maxKnow is how many URLs a question may have.
const maxKnow = 256

// askedKnown answers a question. data is this call's own.
func (n *Node) askedKnown(from strategy.Node, data []byte) {
	var q knowQuestion
	if n.cfg.Knows == nil || json.Unmarshal(data, &q) != nil || len(q.URLs) > maxKnow {
		return
	}
	n.driver.InLane("know", "say which URLs are known", func(context.Context) error {
		a := knowAnswer{ID: q.ID, Say: string(bytes.Repeat([]byte{sayOthers}, len(q.URLs)))}
		say := []byte(a.Say)
		for i, url := range q.URLs {
			mine, known, err := n.cfg.Knows(url)
			switch {
			case err != nil:
				n.log.Debug("whether a URL is known is not found", "url", url, "err", err)
			case mine && known:
				say[i] = sayKnown
			case mine:
				say[i] = sayNew
			}
		}
		a.Say = string(say)
		if len(q.URLs) == 1 && n.cfg.Links != nil {
			a.Links = n.cfg.Links(q.URLs[0])
		}
		if answer, err := json.Marshal(a); err == nil {
			n.send(from, kindKnown, answer)
		}
		return nil
	})
}

// Known is what is known of URLs that are to be added.
type Known struct {
	New, Known int
	Unsure     int // nobody has answered for them in time
}

// An asker asks members what they know.
type asker struct {
	mu    sync.Mutex // guards below
	say   map[uint64][]byte
	left  map[uint64]map[strategy.Node]bool // who has yet to answer, by question
	links Links
	ended chan struct{} // closed when all have
}

// AskKnown asks the members of a crawl which of the URLs they know, until ctx ends. It receives the bus's messages
// meanwhile, which nobody else may.
func (c Control) AskKnown(ctx context.Context, b bus.Bus, crawl string, urls []string) (k Known, err error) {
	e, err := c.Registry.Get(ctx, quorum.TableKey)
	if err != nil {
		return k, err
	}
	table := new(quorum.Table)
	if e.Value != nil {
		if table, err = quorum.ParseTable(e.Value); err != nil {
			return k, err
		}
	}
	if len(table.Members) == 0 { // nobody has ever begun
		return c.amongSeeds(ctx, urls)
	}
	a, questions := askMembers(ctx, b, crawl, table.Members, urls)
	return a.sum(questions), nil
}

// Links are those that wait until it is known whose their host is.
type Links struct {
	Links  int
	Nodes  int // that have them
	Silent int // nodes that have not answered
}

// AskLinks asks the members of a crawl how many links wait for a URL's host, or for the slice of it that the URL is in,
// to be somebody's. It receives the bus's messages as AskKnown does.
func (c Control) AskLinks(ctx context.Context, b bus.Bus, crawl, url string) (l Links, err error) {
	e, err := c.Registry.Get(ctx, quorum.TableKey)
	if err != nil || e.Value == nil {
		return l, err
	}
	table, err := quorum.ParseTable(e.Value)
	if err != nil || len(table.Members) == 0 {
		return l, err
	}
	a, questions := askMembers(ctx, b, crawl, table.Members, []string{url})
	a.mu.Lock()
	defer a.mu.Unlock()
	l = a.links
	l.Silent = len(a.left[questions[0].ID])
	return l, nil
}

// askMembers asks all members about URLs, until all have answered or ctx ends.
func askMembers(ctx context.Context, b bus.Bus, crawl string, members []strategy.Member, urls []string) (*asker,
	[]knowQuestion) {
	a := &asker{say: map[uint64][]byte{}, left: map[uint64]map[strategy.Node]bool{}, ended: make(chan struct{})}
	receiving, stop := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		// who does not answer is not sure
		_ = b.Receive(receiving, func(from strategy.Node, data []byte) { a.hear(crawl, from, data) })
	}()
	var questions []knowQuestion
	for part := range slices.Chunk(urls, maxKnow) {
		q := knowQuestion{rand.Uint64(), part}
		questions = append(questions, q)
		a.expect(q, members)
	}
	if len(questions) == 0 {
		close(a.ended)
	}
	a.ask(ctx, questions, func(to strategy.Node, data []byte) {
		_ = b.Send(to, envelope(crawl, kindKnow, data)) // may be lost, as any message
	})
	stop()
	<-heard
	return a, questions
}

// earlierChunks is how many chunks of seeds are looked at for those that are given again.
const earlierChunks = 64

// amongSeeds looks among the seeds that wait for a crawl's start.
func (c Control) amongSeeds(ctx context.Context, urls []string) (k Known, err error) {
	r, _, err := c.Record(ctx)
	if err != nil {
		return k, err
	}
	there := map[string]bool{}
	for number := range min(r.Seeds, earlierChunks) {
		e, err := c.Registry.Get(ctx, seedsKey(number))
		if err != nil {
			return k, err
		}
		for line := range strings.SplitSeq(string(e.Value), "\n") {
			there[line] = true
		}
	}
	for _, url := range urls {
		if there[url] {
			k.Known++
		} else {
			k.New++
		}
	}
	return k, nil
}

func (a *asker) expect(q knowQuestion, members []strategy.Member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.say[q.ID], a.left[q.ID] = bytes.Repeat([]byte{sayOthers}, len(q.URLs)), map[strategy.Node]bool{}
	for _, m := range members {
		a.left[q.ID][m.Node] = true
	}
}

// askAgain is when those are asked again who have not answered: messages are lost, and the first answer may come before
// it can be heard.
const askAgain = 300 * time.Millisecond

// ask sends the questions, again and again to those who have not answered, until all have or ctx ends.
func (a *asker) ask(ctx context.Context, questions []knowQuestion, send func(to strategy.Node, data []byte)) {
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		for _, q := range questions {
			data, err := json.Marshal(q)
			if err != nil {
				continue
			}
			for _, to := range a.silent(q.ID) {
				send(to, data)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.ended:
			return
		case <-tick.C:
		}
	}
}

// silent are those who have not answered a question.
func (a *asker) silent(id uint64) []strategy.Node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.left[id]))
}

func (a *asker) hear(crawl string, from strategy.Node, data []byte) {
	kind, data, err := open(data, crawl)
	var answer knowAnswer
	if err != nil || kind != kindKnown || json.Unmarshal(data, &answer) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	left, say := a.left[answer.ID], a.say[answer.ID]
	if !left[from] || len(answer.Say) != len(say) {
		return
	}
	delete(left, from)
	if answer.Links > 0 {
		a.links.Links += answer.Links
		a.links.Nodes++
	}
	for i := range say {
		if letter := answer.Say[i]; letter == sayKnown || letter == sayNew && say[i] == sayOthers {
			say[i] = letter
		}
	}
	if len(left) > 0 {
		return
	}
	if delete(a.left, answer.ID); len(a.left) == 0 {
		close(a.ended)
	}
}

func (a *asker) sum(questions []knowQuestion) (k Known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range questions {
		_, open := a.left[q.ID]
		for _, letter := range a.say[q.ID] {
			switch {
			case letter == sayKnown:
				k.Known++
			case letter == sayNew, !open: // all have answered, and the host is nobody's
				k.New++
			default:
				k.Unsure++
			}
		}
	}
	return k
}
