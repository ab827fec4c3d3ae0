package overlay_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/overlay"
	"kumo/internal/overlay/overlaytest"
)

// TestNewcomersFindTheirPlaceSoon lets nodes join where messages are lost and neighbours exchange words seldom: what a
// newcomer was not told the first time it asks for again, though its neighbours ask it meanwhile.
func TestNewcomersFindTheirPlaceSoon(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := overlaytest.New(seed)
	w.Loss = 0.05
	w.Config = overlay.Config{Notice: 30 * time.Second, Check: 10 * time.Minute}
	joinAll(w, 60, 500*time.Millisecond)
	w.Run(5 * time.Minute)
	var longest time.Duration
	for range 200 {
		n := w.Start(w.Names(1)[0], w.Any().Name, w.Any().Name, w.Any().Name)
		began := w.Now()
		for n.Fresh == 0 && w.Now() < began+5*time.Minute {
			w.Run(time.Second)
		}
		longest = max(longest, w.Now()-began)
	}
	if t.Logf("the longest took %v", longest); longest > 20*time.Second {
		t.Error("that is too long")
	}
}
