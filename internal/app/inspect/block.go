package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/state/forecast"
	"kumo/internal/state/frontier"
)

// A Blocked counts the pending URLs that block rules would exclude.
type Blocked struct {
	Hit     int  `json:"hit"`     // excluded ones among those examined
	Looked  int  `json:"looked"`  // examined URLs
	Waiting int  `json:"waiting"` // pending URLs in total
	Whole   bool `json:"whole"`   // all pending URLs were examined
	// Some of the excluded URLs.
	Examples []string `json:"examples,omitempty"`
}

// Words describes the count in a sentence.
func (b *Blocked) Words() string {
	if b.Whole {
		return fmt.Sprintf("%s of %s that %s would be excluded", forecast.Grouped(int64(b.Hit)), urls(b.Waiting),
			stats.Either(b.Waiting, "waits", "wait"))
	}
	return fmt.Sprintf("at least %s of %s examined would be excluded; %s wait in all",
		forecast.Grouped(int64(b.Hit)), urls(b.Looked), forecast.Grouped(int64(b.Waiting)))
}

func urls(n int) string { return forecast.Grouped(int64(n)) + stats.Either(n, " URL", " URLs") }

// Add adds the count of another node.
func (b *Blocked) Add(o Blocked) {
	b.Hit, b.Looked, b.Waiting, b.Whole = b.Hit+o.Hit, b.Looked+o.Looked, b.Waiting+o.Waiting, b.Whole && o.Whole
	b.Examples = append(b.Examples, o.Examples...)
	b.Examples = b.Examples[:min(len(b.Examples), maxExamples)]
}

// A BlockCounter counts the pending URLs that rules would exclude, in limited time.
type BlockCounter interface {
	Blocked(ctx context.Context, rules []string) (*Blocked, error)
}

const (
	blockTime   = 2 * time.Second // for one count
	blockHosts  = 2_000           // examined hosts, those with the longest queues first
	blockQueue  = 10_000          // examined URLs per host
	maxExamples = 5
)

// Blocked implements [BlockCounter]. The URLs of a host that is excluded as a whole are counted without being read.
func (l *Live) Blocked(ctx context.Context, rules []string) (*Blocked, error) {
	blocks, err := policy.ParseBlocks(rules)
	if err != nil {
		return nil, err
	}
	b, end := &Blocked{Whole: true}, time.Now().Add(blockTime)
	enough := func() bool { return ctx.Err() != nil || time.Now().After(end) }
	for h, err := range l.Frontier.Inspector().Hosts(blockHosts, frontier.ByPending) {
		if err != nil {
			return nil, err
		}
		if b.Waiting > 0 && enough() {
			break
		}
		b.Waiting += h.Pending
		if err := l.blockedAt(&h, blocks, b, enough); err != nil {
			return nil, err
		}
	}
	if all := l.Frontier.Counts().URLs; all > b.Waiting { // some hosts were not examined, or URLs were added
		b.Waiting, b.Whole = all, false
	}
	return b, ctx.Err()
}

func (l *Live) blockedAt(h *frontier.HostInfo, blocks *policy.BlockRules, b *Blocked, enough func() bool) error {
	host := item.HostOfSlice(h.Key)
	if u, err := weburl.Parse("https://" + host + "/"); err == nil && blocks.MatchHost(u) != "" {
		b.Hit, b.Looked = b.Hit+h.Pending, b.Looked+h.Pending
		if len(b.Examples) < maxExamples {
			b.Examples = append(b.Examples, host)
		}
		return nil
	}
	if blocks.HostsOnly() {
		b.Looked += h.Pending
		return nil
	}
	items, err := l.Frontier.Inspector().Queue(h.Key, blockQueue)
	if err != nil {
		return err
	}
	b.Whole = b.Whole && len(items) < blockQueue
	for i := range items {
		if i%256 == 255 && enough() {
			b.Whole = false
			return nil
		}
		b.Looked++
		u, err := weburl.Parse(items[i].URL)
		if err != nil || blocks.Match(u) == "" {
			continue
		}
		if b.Hit++; len(b.Examples) < maxExamples {
			b.Examples = append(b.Examples, items[i].URL)
		}
	}
	return nil
}

var _ BlockCounter = (*Live)(nil)

// A BlockedAll counts the pending URLs that block rules would exclude, over all nodes that answered.
type BlockedAll struct {
	Blocked
	Nodes   int      `json:"nodes"`             // that answered
	Silent  []string `json:"silent,omitempty"`  // nodes that did not answer in time
	Unasked int      `json:"unasked,omitempty"` // nodes that were not asked because there are too many
}

// NewBlockedAll returns a count of no nodes.
func NewBlockedAll() *BlockedAll { return &BlockedAll{Blocked: Blocked{Whole: true}} }

// AddNode adds the count of a node, a Blocked in JSON; nil if it has not answered.
func (b *BlockedAll) AddNode(name string, count []byte) {
	var of Blocked
	if count == nil || json.Unmarshal(count, &of) != nil {
		b.Silent = append(b.Silent, name)
		slices.Sort(b.Silent)
		return
	}
	b.Nodes++
	b.Add(of)
}

// maxNamed is the maximum number of silent nodes that are listed by name.
const maxNamed = 10

// Words describes the count in one or two sentences.
func (b *BlockedAll) Words() string {
	if b.Nodes == 0 && len(b.Silent)+b.Unasked == 0 {
		return "no node has started to crawl, and no URLs are pending"
	}
	words := fmt.Sprintf("at %s %s", stats.Count(b.Nodes, "nodes"), b.Blocked.Words())
	if b.Nodes == 0 {
		words = "no node has counted the URLs"
	}
	if n := len(b.Silent); n > 0 {
		some := strings.Join(b.Silent[:min(n, maxNamed)], ", ")
		if n > maxNamed {
			some += fmt.Sprintf(" and %d more", n-maxNamed)
		}
		words += fmt.Sprintf(". Not counted: %s, which %s not answered in time", some, stats.Either(n, "has", "have"))
	}
	if b.Unasked > 0 {
		words += fmt.Sprintf(". %s %s not asked: there are too many", stats.Count(b.Unasked, "nodes"),
			stats.Either(b.Unasked, "was", "were"))
	}
	return words
}
