package machine

import (
	"io"
	"math/rand/v2"
	"time"
)

// A File is written to, and made durable.
type File interface {
	io.Writer
	Sync() error
}

const (
	leastWrite = 64 << 10
	mostWrite  = 16 << 20
	writeTime  = time.Second
)

// WriteSpeed is how fast a file takes what is to last, in megabits a second: it writes pieces that double in size, each
// made durable, for a second, and the piece that is under way then, or until 16 MiB are there.
func WriteSpeed(f File) (mbps float64, err error) {
	piece := make([]byte, mostWrite/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(piece) // never fails; some disks make little of what is all the same
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
