package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kumo/internal/base/stats"
)

// A BlockedAll is how many of the URLs that wait rules would leave out, at all nodes of a crawl that have answered.
type BlockedAll struct {
	Blocked
	Nodes   int      `json:"nodes"`             // that have answered
	Silent  []string `json:"silent,omitempty"`  // nodes that have not, in time
	Unasked int      `json:"unasked,omitempty"` // nodes that nobody has asked: there are too many
}

// NewBlockedAll is a count of no node.
func NewBlockedAll() *BlockedAll { return &BlockedAll{Blocked: Blocked{Whole: true}} }

// AddNode adds what a node has counted, a Blocked in JSON; nil: it has not answered.
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

// mostNamed is how many nodes are named of those that have not answered.
const mostNamed = 10

// Words say it in a sentence, or two.
func (b *BlockedAll) Words() string {
	if b.Nodes == 0 && len(b.Silent)+b.Unasked == 0 {
		return "no node has begun to crawl, and nothing waits"
	}
	words := fmt.Sprintf("at %s %s", stats.Count(b.Nodes, "nodes"), b.Blocked.Words())
	if b.Nodes == 0 {
		words = "no node has said how many URLs that is"
	}
	if n := len(b.Silent); n > 0 {
		some := strings.Join(b.Silent[:min(n, mostNamed)], ", ")
		if n > mostNamed {
			some += fmt.Sprintf(" and %d more", n-mostNamed)
		}
		words += fmt.Sprintf(". Not counted: %s, which %s not answered in time", some, stats.Either(n, "has", "have"))
	}
	if b.Unasked > 0 {
		words += fmt.Sprintf(". %s %s not asked: there are too many", stats.Count(b.Unasked, "nodes"),
			stats.Either(b.Unasked, "was", "were"))
	}
	return words
}
