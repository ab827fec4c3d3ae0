package meshnode

import (
	"context"
	"log/slog"
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

// To count known URLs, a user asks any node. That node locates the nodes that remember the URLs, and asks them.

const (
	knownTimeout     = 2 * time.Second        // for other nodes to answer
	knownRetry       = 300 * time.Millisecond // between repetitions of a request
	maxLocates       = 64                     // concurrent lookups of nodes
	maxKnownRequests = 32                     // concurrent requests of other nodes
)

// A knownState is the answer for one URL.
type knownState byte

const (
	unanswered knownState = iota // no answer
	isNew
	isKnown
)

// A urlKey identifies a URL in a history.
type urlKey struct {
	host string // or its slice
	hash history.Hash
}

// CountKnown asks the nodes that remember the URLs, at most control.MaxURLs, how many of them are known.
func (n *Node) CountKnown(ctx context.Context, urls []string) (k control.Known, err error) {
	if r, _ := n.Crawl(); r.State == desired.Waiting {
		return n.amongSeeds(ctx, urls)
	}
	return n.survey.count(ctx, urls), nil
}

// A survey asks other nodes which URLs they know, and answers their requests. It is safe for concurrent use.
type survey struct {
	self      strategy.Node
	slice     func(url string) string
	history   *history.DB
	locate    func(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error)
	asker     *requester
	msgs      *messages
	tasks     *tasks
	log       *slog.Logger
	answering chan struct{} // limits concurrent requests of other nodes
}

func (s *survey) count(ctx context.Context, urls []string) (k control.Known) {
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	all, hosts := make([]urlKey, len(urls)), map[string][]int{}
	for i, url := range urls {
		all[i] = urlKey{s.slice(url), history.HashOf(url)}
		hosts[all[i].host] = append(hosts[all[i].host], i)
	}
	said := make([]knownState, len(urls))
	var mu sync.Mutex // guards said
	var asking sync.WaitGroup
	for to, which := range s.backups(ctx, hosts) {
		asking.Go(func() {
			some := make([]urlKey, len(which))
			for i, j := range which {
				some[i] = all[j]
			}
			answer := s.query(ctx, to, some)
			mu.Lock()
			defer mu.Unlock()
			for i, a := range answer {
				said[which[i]] = max(said[which[i]], a)
			}
		})
	}
	asking.Wait()
	for _, x := range said {
		switch x {
		case isKnown:
			k.Known++
		case isNew:
			k.New++
		default:
			k.Unsure++
		}
	}
	return k
}

// backups returns the nodes that remember hosts, each with the indexes of its hosts' URLs.
func (s *survey) backups(ctx context.Context, hosts map[string][]int) map[strategy.Node][]int {
	var mu sync.Mutex // guards by
	by := map[strategy.Node][]int{}
	var finding sync.WaitGroup
	slots := make(chan struct{}, maxLocates)
	for host, which := range hosts {
		slots <- struct{}{}
		finding.Go(func() {
			defer func() { <-slots }()
			_, backups, _ := s.locate(ctx, host) // on failure, no node is asked
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

// query returns a node's answers; empty if ctx ends first.
func (s *survey) query(ctx context.Context, to strategy.Node, urls []urlKey) []knownState {
	if to == s.self {
		return s.findStates(urls)
	}
	var w varint.Writer
	for _, u := range urls {
		w.String(u.host)
		w = append(w, u.hash[:]...)
	}
	said := s.asker.request(ctx, to, kindKnownRequest, w, knownRetry,
		func(answer []byte) bool { return len(answer) == len(urls) })
	answer := make([]knownState, len(said))
	for i, b := range said {
		answer[i] = min(knownState(b), isKnown)
	}
	return answer
}

// answer answers another node. It ignores the request if too many are in progress; the node will repeat it.
func (s *survey) answer(from strategy.Node, data []byte) {
	r := varint.Reader{Rest: data}
	id := r.Uint()
	var urls []urlKey
	for len(r.Rest) > 0 && !r.Bad && len(urls) < control.MaxURLs {
		u := urlKey{host: r.String()}
		r.Bad = r.Bad || copy(u.hash[:], r.Rest) < len(u.hash)
		if r.Bad {
			break
		}
		r.Rest = r.Rest[len(u.hash):]
		urls = append(urls, u)
	}
	if !r.Complete() {
		s.msgs.warnUnreadable(from, errGarbled)
		return
	}
	select {
	case s.answering <- struct{}{}:
	default:
		return
	}
	s.tasks.run("look up known URLs", func(context.Context) error {
		defer func() { <-s.answering }()
		var w varint.Writer
		w.Uint(id)
		for _, k := range s.findStates(urls) {
			w.Byte(byte(k))
		}
		s.msgs.send(from, kindKnownReply, w)
		return nil
	})
}

func (s *survey) findStates(urls []urlKey) []knownState {
	all := make([]knownState, len(urls))
	for i, u := range urls {
		_, known, err := s.history.Get(u.host, u.hash)
		switch {
		case err != nil:
			s.log.Debug("cannot look up whether a URL is known", "host", u.host, "err", err)
		case known:
			all[i] = isKnown
		default:
			all[i] = isNew
		}
	}
	return all
}

// seedsLooked is the number of lists of seeds that are searched for duplicates.
const seedsLooked = 64

func (n *Node) amongSeeds(ctx context.Context, urls []string) (k control.Known, err error) {
	var lists []mesh.ChunkID
	err = n.inbox.call(ctx, func() <-chan struct{} {
		for id, c := range n.watcher.chunks {
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
