package crawl

import (
	"sync"
	"sync/atomic"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

// For a URL behind the part of its host's queue in memory, Explain returns the known facts before the disk answers.
func TestExplainTellsWhatMemoryKnowsFirst(t *testing.T) {
	var stalls atomic.Bool
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk := vfstest.NewSlow(vfs.OS, func(call string) {
		if call == "read" && stalls.Load() {
			once.Do(func() { close(reached) })
			<-goOn
		}
	})
	const n = 20_000
	h := &haul{t: t, disk: disk, memory: 1 << 20}
	e := h.open(nobodys{})
	long(e, n)
	stalls.Store(true)
	var told atomic.Pointer[Explanation]
	done := make(chan error, 1)
	var x *Explanation
	go func() {
		var err error
		x, err = e.Inspector.Explain("https://long.test/articles/2026/a-title-in-words/9000", func(x Explanation) { told.Store(&x) })
		done <- err
	}()
	<-reached
	if soFar := told.Load(); soFar == nil || soFar.Found != nil || !soFar.HostMet || soFar.Host.Pending != n {
		t.Errorf("while the disk stalls: %+v", soFar)
	}
	close(goOn)
	if err := <-done; err != nil || x.Found == nil || x.Found.Position != 9001 {
		t.Errorf("once it answers: %+v, %v", x, err)
	}
}
