package wire

import (
	"os"
	"sync"
	"testing"

	"kumo/internal/member"
	"kumo/internal/node"
	"kumo/internal/strategy"
	"kumo/internal/vfs"
)

// Who counts looks for the node among the members while it joins, on other goroutines.
func TestANodeIsFoundWhileItJoins(t *testing.T) {
	dir := t.TempDir()
	f := &folder{dir: dir, disk: vfs.OS}
	if err := os.Mkdir(f.path("state"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := &life{n: &ClusterNode{home: findHome(dir), disk: vfs.OS}, id: node.Identity{Name: "a", Life: "1"}, crawl: &Crawl{folder: f}}
	l.counter = newCounter(l)
	var both sync.WaitGroup
	both.Go(func() {
		if err := l.enter(); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() { l.counter.learn(&member.Table{Members: []strategy.Member{{Node: "b~1"}, {Node: "a~1"}}}) })
	both.Wait()
	if _, place, _ := l.counter.members(); place != 1 || !l.id.Joined {
		t.Errorf("it is member number %d, joined %v", place, l.id.Joined)
	}
}
