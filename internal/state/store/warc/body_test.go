package warc

import (
	"bytes"
	"runtime"
	"testing"
)

// TestLongHead tests that the length of a response head is limited.
func TestLongHead(t *testing.T) {
	rec := &Record{Block: bytes.Repeat([]byte("a"), maxAnswerHead+1)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := rec.Response()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 1<<20 {
		t.Errorf("%v, %d bytes allocated", err, n)
	}
}
