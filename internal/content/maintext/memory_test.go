package maintext

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMemory bounds the memory of the pages with most elements and texts per byte, as a multiple of their size:
// package crawl limits the number of concurrent extractions by it.
func TestMemory(t *testing.T) {
	const most = 110 // crawl's textCost
	for _, piece := range []string{"<p>", "<p>a", "<b>a", "<h1>a", "<li>a", "<td>a", "<table><td>a", "a</p>", "<p a>b"} {
		t.Run(piece, func(t *testing.T) {
			body := []byte(strings.Repeat(piece, 30_000))
			d := documents.New().(*document)
			var text Text
			var before, after runtime.MemStats
			runtime.GC()
			runtime.GC() // empties the pool of documents
			runtime.ReadMemStats(&before)
			err := d.read(&text, body, "", time.Now(), nil)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			live, all := int(after.HeapAlloc-before.HeapAlloc), int(after.TotalAlloc-before.TotalAlloc)
			size := len(body)
			t.Logf("%d bytes a byte, %d with garbage", live/size, all/size)
			if live > most*size || all > 2*most*size {
				t.Errorf("%d bytes for %d bytes of a page, %d with garbage", live, size, all)
			}
			runtime.KeepAlive(d)
			runtime.KeepAlive(&text)
			runtime.KeepAlive(body)
		})
	}
}
