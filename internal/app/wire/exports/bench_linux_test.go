package exports

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"kumo/internal/archive/export"
)

// BenchmarkForms exports the crawl in the folder KUMO_TEST_EXPORT to each format. MB/s refer to the stored WARC files.
func BenchmarkForms(b *testing.B) {
	crawl := os.Getenv("KUMO_TEST_EXPORT")
	if crawl == "" {
		b.Skip("KUMO_TEST_EXPORT names no crawl")
	}
	size := int64(0)
	err := filepath.WalkDir(filepath.Join(crawl, "warc"), func(_ string, d fs.DirEntry, err error) error {
		if info, infoErr := d.Info(); err == nil && infoErr == nil && !d.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, form := range Formats() {
		b.Run(form, func(b *testing.B) {
			b.SetBytes(size)
			begin, urls := used(b), int64(0)
			for b.Loop() {
				x := Export{Config: export.Config{Format: form, Crawl: crawl, Dir: b.TempDir(), Temp: b.TempDir()}}
				r, err := Run(b.Context(), x)
				if err != nil {
					b.Fatal(err)
				}
				urls += r.URLs + r.Unreadable
			}
			b.ReportMetric(float64((used(b)-begin).Microseconds())/float64(urls), "cpu-µs/URL")
		})
	}
}

// used returns the CPU time of the process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
