package meshnode

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/cluster/strategy"
)

// TestGarbageDoesNotFillTheLog has a member send what is no answer and no question, ten thousand times in two minutes.
func TestGarbageDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := &Node{log: slog.New(slog.NewTextHandler(&log, nil)), answering: make(chan struct{}, 1),
			complaints: bounded.NewSeldom[strategy.Node](time.Minute, 9)}
		for range 5000 {
			n.answered("other~1", []byte{255})
			n.askedKnown("other~1", []byte{255})
			time.Sleep(24 * time.Millisecond)
		}
		if lines := strings.Count(log.String(), "\n"); lines < 1 || lines > 3 {
			t.Errorf("%d lines of the log", lines)
		}
	})
}
