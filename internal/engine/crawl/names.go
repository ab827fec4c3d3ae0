package crawl

import (
	"strings"
	"sync"

	"kumo/internal/base/bounded"
)

const maxNames = 50_000

// names are strings that many items share: hosts, and discovery paths.
type names struct {
	mu   sync.Mutex // guards kept
	kept *bounded.Recent[string, string]
}

func newNames() *names { return &names{kept: bounded.NewRecent[string, string](maxNames)} }

// intern returns one copy of a string that many items share.
func (n *names) intern(s string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept, ok := n.kept.Get(s); ok {
		return kept
	}
	s = strings.Clone(s)
	n.kept.Put(s, s)
	return s
}
