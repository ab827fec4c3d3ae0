package machine

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A disk has a write speed in bytes per second and a duration of each Sync.
type disk struct {
	rate    float64
	seek    time.Duration
	fails   error
	unsaved int
	written int
}

func (d *disk) Write(p []byte) (int, error) { d.unsaved += len(p); return len(p), nil }

func (d *disk) Sync() error {
	time.Sleep(d.seek + time.Duration(float64(d.unsaved)/d.rate*float64(time.Second)))
	d.written, d.unsaved = d.written+d.unsaved, 0
	return d.fails
}

func TestWriteSpeed(t *testing.T) {
	for what, c := range map[string]struct {
		disk
		want, off float64
		longest   time.Duration
	}{
		"as slow as the slowest of five": {disk{rate: megabit}, 1, 0.01, 5 * time.Second},
		"18 Mb/s":                        {disk{rate: 18 * megabit}, 18, 0.01, 2 * time.Second},
		"one that seeks":                 {disk{rate: 1000 * megabit, seek: 8e6}, 1000, 0.5, 2 * time.Second},
		"a fast one":                     {disk{rate: 8000 * megabit}, 8000, 0.01, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, d := time.Now(), c.disk
			got, err := WriteSpeed(&d)
			took := time.Since(began)
			t.Logf("%s: %.1f Mb/s, by %d bytes in %v", what, got, d.written, took)
			if err != nil || math.Abs(got-c.want) > c.off*c.want || took > c.longest || d.written > mostWrite {
				t.Errorf("want %v (%v)", c.want, err)
			}
		})
	}
}

func TestWriteSpeedOfBadDisk(t *testing.T) {
	full := errors.New("no space left")
	if got, err := WriteSpeed(&disk{rate: 1e9, fails: full}); !errors.Is(err, full) || got != 0 {
		t.Errorf("%v Mb/s, %v", got, err)
	}
}
