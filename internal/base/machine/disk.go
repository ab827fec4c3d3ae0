package machine

import (
	"io"
	"math/rand/v2"
	"time"
)

// A File can be written and synced.
type File interface {
	io.Writer
	Sync() error
}

const (
	leastWrite = 64 << 10
	mostWrite  = 16 << 20
	writeTime  = time.Second
)

// WriteSpeed measures the durable write speed of a file, in megabits per second. It writes pieces of doubling size and
// syncs each, until a second has passed or 16 MiB are written.
func WriteSpeed(f File) (mbps float64, err error) {
	piece := make([]byte, mostWrite/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(piece) // never fails; random data, since some disks compress
	began, written := time.Now(), 0
	for size := leastWrite; size > 0 && time.Since(began) < writeTime; size = min(2*size, mostWrite-written) {
		if _, err := f.Write(piece[:size]); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		written += size
	}
	return float64(written) / megabit / max(time.Since(began).Seconds(), 1e-6), nil
}
