package stats

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", -time.Second: "0 s", 250 * time.Millisecond: "250 ms", time.Second: "1 s", 1540 * time.Millisecond: "1.5 s",
		42 * time.Second: "42 s", 12*time.Minute + 10*time.Second: "12 min", 9*time.Hour + 31*time.Minute: "9.5 h",
		32_400 * time.Second: "9 h", 77 * time.Hour: "3.2 days", 4000 * time.Hour: "167 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
