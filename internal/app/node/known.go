package node

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// To count known URLs, a user's client asks all members. Each answers for the hosts that it owns.

type knownRequest struct {
	ID   uint64   `json:"id"`
	URLs []string `json:"urls"`
}

// A knownReply has a letter for each URL of a request.
type knownReply struct {
	ID      uint64 `json:"id"`
	Letters string `json:"say"`
	Links   int    `json:"links,omitempty"` // for a request with one URL: links that wait until its host has an owner
}

// The letters.
const (
	replyNotOwner = '-' // another node owns the host, or none
	replyNew      = 'n'
	replyKnown    = 'k'
)

// maxKnownURLs is the maximum number of URLs in a request.
const maxKnownURLs = 256

// handleKnown answers a request. It retains data.
func (n *Node) handleKnown(from strategy.Node, data []byte) {
	var q knownRequest
	if n.cfg.IsKnown == nil || json.Unmarshal(data, &q) != nil || len(q.URLs) > maxKnownURLs {
		return
	}
	n.driver.InLane("know", "look up known URLs", func(context.Context) error {
		a := knownReply{ID: q.ID, Letters: string(bytes.Repeat([]byte{replyNotOwner}, len(q.URLs)))}
		say := []byte(a.Letters)
		for i, url := range q.URLs {
			mine, known, err := n.cfg.IsKnown(url)
			switch {
			case err != nil:
				n.log.Debug("cannot look up whether a URL is known", "url", url, "err", err)
			case mine && known:
				say[i] = replyKnown
			case mine:
				say[i] = replyNew
			}
		}
		a.Letters = string(say)
		if len(q.URLs) == 1 && n.cfg.PendingLinks != nil {
			a.Links = n.cfg.PendingLinks(q.URLs[0])
		}
		if answer, err := json.Marshal(a); err == nil {
			n.send(from, kindKnownReply, answer)
		}
		return nil
	})
}

// Known counts how many of the URLs are known.
type Known struct {
	New, Known int
	Unsure     int // without an answer in time
}

// CountKnown asks the members of a crawl which of the URLs they know, until ctx ends. It receives the bus's messages,
// which no other code may receive at the same time.
func (c Control) CountKnown(ctx context.Context, b bus.Bus, crawl string, urls []string) (k Known, err error) {
	table, err := c.Table(ctx)
	if err != nil {
		return k, err
	}
	if len(table.Members) == 0 { // no node has ever started
		return c.amongSeeds(ctx, urls)
	}
	return pollMembers(ctx, b, crawl, table.Members, urls).known(), nil
}

// Table reads the table of members; it is empty if there is none yet.
func (c Control) Table(ctx context.Context) (*quorum.Table, error) {
	e, err := c.Registry.Get(ctx, quorum.TableKey)
	if err != nil || e.Value == nil {
		return new(quorum.Table), err
	}
	return quorum.ParseTable(e.Value)
}

// Links counts links that wait until their host has an owner.
type Links struct {
	Links  int
	Nodes  int // with such links
	Silent int // nodes that have not answered
}

// CountLinks asks the members of a crawl how many links wait until the URL's host or slice has an owner. It receives
// the bus's messages as CountKnown does.
func (c Control) CountLinks(ctx context.Context, b bus.Bus, crawl, url string) (l Links, err error) {
	table, err := c.Table(ctx)
	if err != nil || len(table.Members) == 0 {
		return l, err
	}
	said := pollMembers(ctx, b, crawl, table.Members, []string{url})
	for id := range said.letters {
		said.links.Silent = len(said.poll.silent(id))
	}
	return said.links, nil
}

// knownRetry is the interval between repetitions of a request.
const knownRetry = 300 * time.Millisecond

// knownReplies collects the members' replies.
type knownReplies struct {
	poll    *poll
	letters map[uint64][]byte // by request: one letter per URL
	links   Links
}

func pollMembers(ctx context.Context, b bus.Bus, crawl string, members []strategy.Member, urls []string) *knownReplies {
	s := &knownReplies{poll: newPoll(kindKnownRequest, kindKnownReply, knownRetry), letters: map[uint64][]byte{}}
	s.poll.accept = s.addReply
	for part := range slices.Chunk(urls, maxKnownURLs) {
		q := knownRequest{rand.Uint64(), part}
		s.letters[q.ID] = bytes.Repeat([]byte{replyNotOwner}, len(part))
		_ = s.poll.put(q.ID, q, members) // cannot fail: plain fields only
	}
	s.poll.run(ctx, b, crawl)
	return s
}

func (s *knownReplies) addReply(id uint64, _ strategy.Node, data []byte) bool {
	var answer knownReply
	say := s.letters[id]
	if json.Unmarshal(data, &answer) != nil || len(answer.Letters) != len(say) {
		return false
	}
	if answer.Links > 0 {
		s.links.Links += answer.Links
		s.links.Nodes++
	}
	for i := range say {
		if letter := answer.Letters[i]; letter == replyKnown || letter == replyNew && say[i] == replyNotOwner {
			say[i] = letter
		}
	}
	return true
}

// known counts the letters when the poll is over.
func (s *knownReplies) known() (k Known) {
	for id, letters := range s.letters {
		open := len(s.poll.silent(id)) > 0
		for _, letter := range letters {
			switch {
			case letter == replyKnown:
				k.Known++
			case letter == replyNew, !open: // all have answered, and the host has no owner
				k.New++
			default:
				k.Unsure++
			}
		}
	}
	return k
}

// maxEarlierChunks is the number of chunks of seeds that are searched for duplicates.
const maxEarlierChunks = 64

// amongSeeds searches the seeds of a crawl that was not started yet.
func (c Control) amongSeeds(ctx context.Context, urls []string) (k Known, err error) {
	r, _, err := c.Record(ctx)
	if err != nil {
		return k, err
	}
	there := map[string]bool{}
	for number := range min(r.Seeds, maxEarlierChunks) {
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
