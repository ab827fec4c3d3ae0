package bucket

import (
	"bytes"
	"crypto/sha256"
	"io"
	"syscall"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/archive/place/placetest"
)

// BenchmarkGateway uploads and downloads a file of 256 MB with a real server, and reports the CPU time of this process:
// go test -run '^$' -bench Gateway -benchtime 3x ./internal/archive/place/bucket
func BenchmarkGateway(b *testing.B) {
	p := open(b, buckettest.URL(buckettest.Gateway(b), "x"))
	data := placetest.RandomBytes(1, 256_000_000)
	if err := place.WriteFile(b.Context(), p, "read", data); err != nil {
		b.Fatal(err)
	}
	for name, work := range map[string]func() error{
		"write": func() error { return place.WriteFile(b.Context(), p, "written", data) },
		"upload": func() error {
			if err := p.Remove(b.Context(), "uploaded"); err != nil {
				return err
			}
			return p.Upload(b.Context(), "uploaded", bytes.NewReader(data), int64(len(data)), sha256.Sum256(data))
		},
		"read": func() error {
			r, err := p.Open(b.Context(), "read", 0, -1)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			before := used(b)
			for b.Loop() {
				if err := work(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((used(b)-before).Seconds()/float64(b.N)/float64(len(data))*1e9, "cpu-s/GB")
		})
	}
}

func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
