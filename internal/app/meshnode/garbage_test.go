package meshnode

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestGarbageDoesNotFillTheLog: a member sends ten thousand invalid messages in two minutes.
func TestGarbageDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		msgs := newMessages(&Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		x, s := &linkExchange{msgs: msgs}, &survey{msgs: msgs}
		for range 5000 {
			x.receiveReply("other~1", []byte{255})
			s.answer("other~1", []byte{255})
			time.Sleep(24 * time.Millisecond)
		}
		if lines := strings.Count(log.String(), "\n"); lines < 1 || lines > 3 {
			t.Errorf("%d lines of the log", lines)
		}
	})
}
