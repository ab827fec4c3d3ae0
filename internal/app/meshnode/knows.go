package meshnode

import (
	"context"
	"strings"
	"sync"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/base/varint"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/history"
)

// Who adds URLs asks any node how many of them are known. That node finds out who remembers them, and asks those.

const (
	knowFor   = 2 * time.Second        // that others have to answer
	knowAgain = 300 * time.Millisecond // they are asked again
	knowFinds = 64                     // hosts whose nodes are looked up at once
	mostKnow  = 32                     // questions of others that are answered at once
)

// A knowledge is an answer about one URL.
type knowledge byte

const (
	notSaid knowledge = iota // nobody has answered
	isNew
	isKnown
)

// A remembered is a URL as histories have it.
type remembered struct {
	host string // the slice
	hash history.Hash
}

// Known finds out how many URLs, control.MostURLs at most, are known to those who remember them.
func (n *Node) Known(ctx context.Context, urls []string) (k control.Known, err error) {
	if r, _ := n.Crawl(); r.State == desired.Waiting {
		return n.amongSeeds(ctx, urls)
	}
	ctx, cancel := context.WithTimeout(ctx, knowFor)
	defer cancel()
	all, hosts := make([]remembered, len(urls)), map[string][]int{}
	for i, url := range urls {
		all[i] = remembered{n.cfg.Slice(url), history.HashOf(url)}
		hosts[all[i].host] = append(hosts[all[i].host], i)
	}
	said := make([]knowledge, len(urls))
	var mu sync.Mutex // guards said
	var asking sync.WaitGroup
	for to, which := range n.whoRemembers(ctx, hosts) {
		asking.Go(func() {
			some := make([]remembered, len(which))
			for i, j := range which {
				some[i] = all[j]
			}
			answer := n.askKnown(ctx, to, some)
			mu.Lock()
			defer mu.Unlock()
			for i, a := range answer {
				said[which[i]] = max(said[which[i]], a)
			}
		})
	}
	asking.Wait()
	for _, s := range said {
		switch s {
		case isKnown:
			k.Known++
		case isNew:
			k.New++
		default:
			k.Unsure++
		}
	}
	return k, nil
}

// whoRemembers finds the nodes that remember hosts, each with the indexes of its hosts' URLs.
func (n *Node) whoRemembers(ctx context.Context, hosts map[string][]int) map[strategy.Node][]int {
	var mu sync.Mutex // guards by
	by := map[strategy.Node][]int{}
	var finding sync.WaitGroup
	slots := make(chan struct{}, knowFinds)
	for host, which := range hosts {
		slots <- struct{}{}
		finding.Go(func() {
			defer func() { <-slots }()
			_, backups, _ := n.Locate(ctx, host) // where that fails nobody is asked
			mu.Lock()
			defer mu.Unlock()
			for _, b := range backups {
				by[b] = append(by[b], which...)
			}
		})
	}
	finding.Wait()
	return by
}

// askKnown asks a node which URLs it remembers, until it answers or ctx ends; nil: it has not.
func (n *Node) askKnown(ctx context.Context, to strategy.Node, urls []remembered) []knowledge {
	if to == n.self {
		return n.remembers(urls)
	}
	answer := make(chan []knowledge, 1)
	n.mu.Lock()
	n.asked++
	id := n.asked
	n.knowing[id] = knowing{to, len(urls), answer}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.knowing, id)
	}()
	var w varint.Writer
	w.Uint(id)
	for _, u := range urls {
		w.String(u.host)
		w = append(w, u.hash[:]...)
	}
	tick := time.NewTicker(knowAgain)
	defer tick.Stop()
	for {
		n.send(to, kindKnow, w)
		select {
		case a := <-answer:
			return a
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// A knowing is a question that another node has yet to answer.
type knowing struct {
	to     strategy.Node
	urls   int
	answer chan<- []knowledge
}

// heardKnown takes the answer.
func (n *Node) heardKnown(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	n.mu.Lock()
	defer n.mu.Unlock()
	k, is := n.knowing[id]
	if !is || r.Bad || k.to != from || len(r.Rest) != k.urls {
		return
	}
	delete(n.knowing, id)
	answer := make([]knowledge, k.urls)
	for i, b := range r.Rest {
		answer[i] = min(knowledge(b), isKnown)
	}
	k.answer <- answer
}

// askedKnown answers another node, unless too many ask: they ask again.
func (n *Node) askedKnown(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	var urls []remembered
	for len(r.Rest) > 0 && !r.Bad && len(urls) < control.MostURLs {
		u := remembered{host: r.String()}
		r.Bad = r.Bad || copy(u.hash[:], r.Rest) < len(u.hash)
		if r.Bad {
			break
		}
		r.Rest = r.Rest[len(u.hash):]
		urls = append(urls, u)
	}
	if !r.Whole() {
		n.complain(from, errGarbled)
		return
	}
	select {
	case n.answering <- struct{}{}:
	default:
		return
	}
	n.run("say which URLs are known", func(context.Context) error {
		defer func() { <-n.answering }()
		var w varint.Writer
		w.Uint(id)
		for _, k := range n.remembers(urls) {
			w.Byte(byte(k))
		}
		n.send(from, kindKnown, w)
		return nil
	})
}

// remembers looks URLs up in this node's history.
func (n *Node) remembers(urls []remembered) []knowledge {
	all := make([]knowledge, len(urls))
	for i, u := range urls {
		_, known, err := n.cfg.History.Get(u.host, u.hash)
		switch {
		case err != nil:
			n.log.Debug("whether a URL is known is not found", "host", u.host, "err", err)
		case known:
			all[i] = isKnown
		default:
			all[i] = isNew
		}
	}
	return all
}

// seedsLooked is how many lists of seeds are looked at for those that are given again.
const seedsLooked = 64

// amongSeeds looks among the seeds that wait for the crawl's start.
func (n *Node) amongSeeds(ctx context.Context, urls []string) (k control.Known, err error) {
	var lists []mesh.ChunkID
	err = n.call(ctx, func() <-chan struct{} {
		for id, c := range n.follow.chunks {
			if c.kind == kindSeeds && len(lists) < seedsLooked {
				lists = append(lists, id)
			}
		}
		return nil
	})
	if err != nil {
		return k, err
	}
	there := map[string]bool{}
	for _, id := range lists {
		list, err := n.store.chunk(id)
		if err != nil {
			return k, err
		}
		for line := range strings.SplitSeq(string(list[1:]), "\n") {
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
