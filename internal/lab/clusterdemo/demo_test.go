package clusterdemo

import (
	"testing"
	"time"

	"kumo/internal/lab/synthweb"
)

func TestFaults(t *testing.T) {
	good := synthweb.Score{Truth: 5, Covered: 5, Repeats: 2}
	good.MostInFlight.Value = 1
	good.LeastGap.Value, good.LeastGap.Host = 290*time.Millisecond, "a"
	if f := Faults(&good, 300*time.Millisecond); len(f) > 0 {
		t.Errorf("a good score has faults: %v", f)
	}
	for _, spoil := range []func(*synthweb.Score){
		func(s *synthweb.Score) { s.Missing = 1 },
		func(s *synthweb.Score) { s.Beyond = 1 },
		func(s *synthweb.Score) { s.Unknown = 1 },
		func(s *synthweb.Score) { s.Forbidden = 1 },
		func(s *synthweb.Score) { s.BeforeRobots = 1 },
		func(s *synthweb.Score) { s.Hasty = 1 },
		func(s *synthweb.Score) { s.Impatient = 1 },
		func(s *synthweb.Score) { s.MostInFlight.Value = 2 },
		func(s *synthweb.Score) { s.LeastGap.Value = 200 * time.Millisecond },
	} {
		bad := good
		spoil(&bad)
		if len(Faults(&bad, 300*time.Millisecond)) != 1 {
			t.Errorf("%+v has faults %v, want one", bad, Faults(&bad, 300*time.Millisecond))
		}
	}
}
