package parquet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/target"
)

const mostMemory = 600 << 20 // limit in bytes for exports of any size with two processors

// TestMillion exports KUMO_TEST_MILLION pages (1000000) in a separate process, logs time and memory, and checks the
// memory.
func TestMillion(t *testing.T) {
	if crawl := os.Getenv("KUMO_TEST_MILLION_CRAWL"); crawl != "" {
		exportMillion(t, crawl)
		return
	}
	count, err := strconv.Atoi(os.Getenv("KUMO_TEST_MILLION"))
	if err != nil || count < 1 {
		t.Skip("KUMO_TEST_MILLION is no number of pages")
	}
	c := exporttest.Many(t, count, func(n int) exporttest.Visit {
		return exporttest.Visit{URL: fmt.Sprintf("http://h%03d.test/%d", n%997, n), Body: pageOf(n, count)}
	})
	warcs, err := filepath.Glob(filepath.Join(c.Dir, "warc", "*.warc.gz"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, name := range warcs {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	out := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run", "^TestMillion$", "-test.timeout", "2h")
	child.Env = append(os.Environ(), "KUMO_TEST_MILLION_CRAWL="+c.Dir, "KUMO_TEST_MILLION_OUT="+out, "TMPDIR="+t.TempDir())
	child.Stderr = os.Stderr
	began := time.Now()
	if text, err := child.Output(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	took, used := time.Since(began), child.ProcessState.SysUsage().(*syscall.Rusage)
	memory, cpu := used.Maxrss<<10, child.ProcessState.UserTime()+child.ProcessState.SystemTime()
	t.Logf("%d pages, %d MB of WARC: %v, %v of CPU (%d µs a page), peak memory %d MB", count, size>>20,
		took.Round(time.Second),
		cpu.Round(time.Second), cpu.Microseconds()/int64(count), memory>>20)
	if memory > mostMemory {
		t.Errorf("it took more than %d MB", mostMemory>>20)
	}
	for name, least := range map[string]int64{"pages": int64(count), "texts": int64(count),
		"links": int64(count) * 29 / 10} {
		f, err := os.Open(filepath.Join(out, name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		file, err := pq.OpenFile(f, info.Size())
		if err != nil || file.NumRows() < least { // a page may have duplicate links
			t.Errorf("%s: %v rows, want %d (%v)", name, file.NumRows(), least, err)
			continue
		}
		t.Logf("%s.parquet: %d rows in %d groups, %d MB", name, file.NumRows(), len(file.RowGroups()), info.Size()>>20)
	}
}

// pageOf returns a page of about 1,500 bytes with three links.
func pageOf(n, count int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html lang=en><title>Page %d</title><meta name=description content=\"What page %d is "+
		"about\"><h1>Page %d</h1>", n, n, n)
	for i := range 3 {
		to := (n*7 + i*n + i + 1) % count
		fmt.Fprintf(&b, "<p>Paragraph %d of page %d has a number of words, such as %x and %x, which nobody else has, and "+
			"ends with a <a href=http://h%03d.test/%d>link to %d</a>. Another sentence follows it, so that the text is longer "+
			"than the link, and so it is taken for what it is meant to be: the main text of a page.", i, n, n*2654435761,
			(n+i)*40503, to%997, to, to)
	}
	return b.String()
}

// exportMillion runs in the child process.
func exportMillion(t *testing.T, crawl string) {
	r, err := export.Run(t.Context(), export.Config{Crawl: crawl, Dir: os.Getenv("KUMO_TEST_MILLION_OUT")},
		func(to *target.Folder) (export.Exporter, error) { return maker(t, to) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
}
