package synthweb

import (
	"strings"
	"testing"
)

// A host has the delay in its robots.txt, unless no client could have read it.
func TestPolicyIsWhatRobotsSays(t *testing.T) {
	for seed := range uint64(20) {
		w := New(Messy(seed, 100, 1000))
		tally := newTally(w)
		for i := range w.hosts {
			_, text := w.robots(uint32(i))
			if asked := strings.Contains(text, "Crawl-delay"); asked != (tally.policy(uint32(i)).delay > 0) &&
				!w.hosts[i].traits.has(Shut) {
				t.Errorf("seed %d, host %d asks for a delay: %v", seed, i, asked)
			}
		}
	}
}
