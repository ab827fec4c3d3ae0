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

// Who adds URLs asks any node how many of them are known. That node finds out who remembers them, and asks those.

const (
	knownTimeout     = 2 * time.Second        // that others have to answer
	knownRetry       = 300 * time.Millisecond // they are asked again
	maxLocates       = 64                     // hosts whose nodes are looked up at once
	maxKnownRequests = 32                     // questions of others that are answered at once
)

// A knowledge is an answer about one URL.
type knownState byte

const (
	unanswered knownState = iota // nobody has answered
	isNew
	isKnown
)

// A remembered is a URL as histories have it.
type urlKey struct {
	host string // the slice
	hash history.Hash
}

// CountKnown finds out how many URLs, control.MostURLs at most, are known to those who remember them.
func (n *Node) CountKnown(ctx context.Context, urls []string) (k control.Known, err error) {
	if r, _ := n.Crawl(); r.State == desired.Waiting {
		return n.amongSeeds(ctx, urls)
	}
	return n.survey.count(ctx, urls), nil
}

// A survey finds out which URLs the nodes that remember them know, and answers others' surveys. Any goroutine may use
// it; the fields do not change.
type survey struct {
	self      strategy.Node
	slice     func(url string) string
	history   *history.DB
	locate    func(ctx context.Context, host string) (target strategy.Node, backups []strategy.Node, err error)
	asker     *requester
	msgs      *messages
	tasks     *tasks
	log       *slog.Logger
	answering chan struct{} // a slot for each question that is being answered
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
			answer := s.ask(ctx, to, some)
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
			_, backups, _ := s.locate(ctx, host) // where that fails nobody is asked
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

// request returns which URLs a node remembers; empty if it has not answered before ctx ends.
func (s *survey) ask(ctx context.Context, to strategy.Node, urls []urlKey) []knownState {
	if to == s.self {
		return s.lookUp(urls)
	}
	var w varint.Writer
	for _, u := range urls {
		w.String(u.host)
		w = append(w, u.hash[:]...)
	}
	said := s.asker.request(
		ctx,
		to,
		kindKnownRequest,
		w,
		knownRetry,
		func(answer []byte) bool { return len(answer) == len(urls) },
	)
	answer := make([]knownState, len(said))
	for i, b := range said {
		answer[i] = min(knownState(b), isKnown)
	}
	return answer
}

// replyKind answers another node, unless too many questions are being answered: it will ask again.
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
	s.tasks.run("say which URLs are known", func(context.Context) error {
		defer func() { <-s.answering }()
		var w varint.Writer
		w.Uint(id)
		for _, k := range s.lookUp(urls) {
			w.Byte(byte(k))
		}
		s.msgs.send(from, kindKnownReply, w)
		return nil
	})
}

func (s *survey) lookUp(urls []urlKey) []knownState {
	all := make([]knownState, len(urls))
	for i, u := range urls {
		_, known, err := s.history.Get(u.host, u.hash)
		switch {
		case err != nil:
			s.log.Debug("whether a URL is known is not found", "host", u.host, "err", err)
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
