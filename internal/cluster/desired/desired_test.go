package desired

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/policy"
)

// The allowed changes of states, and the refused starts.
func TestTransitions(t *testing.T) {
	all := []State{Waiting, Running, Paused, Stopping, Done}
	may := map[State][]State{Running: {Paused, Stopping}, Paused: {Running, Stopping}, Waiting: {Stopping},
		Done: {Stopping}}
	for _, from := range all {
		for _, to := range all {
			want := from == to
			for _, s := range may[from] {
				want = want || s == to
			}
			r := Record{State: from}
			if err := r.Set(to); (err == nil) != want || err == nil && r.State != to || err != nil && !errors.Is(err, ErrState) {
				t.Errorf("%s to %s: %v, %s", from, to, err, r.State)
			}
		}
	}
	for _, c := range []struct {
		from   Record
		seeded bool
		ok     bool
	}{
		{Record{State: Waiting}, false, false},
		{Record{State: Waiting, Seeds: 1}, true, true},
		{Record{State: Stopping, Seeds: 1}, false, true},
		{Record{State: Done, Seeds: 1}, false, false},
		{Record{State: Done, Seeds: 2}, true, true},
	} {
		r := c.from
		if err := r.Start(nil, c.seeded); (err == nil) != c.ok || c.ok && r.State != Running {
			t.Errorf("start of %+v, seeds %v: %v", c.from, c.seeded, err)
		}
	}
}

// The first start sets the settings; later ones change some, and an empty one is removed.
func TestSettings(t *testing.T) {
	r := Record{State: Waiting, Seeds: 1}
	if err := r.ChangeSettings(map[string][]string{"delay": {"1s"}}); !errors.Is(err, ErrState) {
		t.Errorf("settings of a crawl that was not started: %v", err)
	}
	if err := r.Start(map[string][]string{"depth": {"3"}, "limit": {"9"}}, true); err != nil {
		t.Fatal(err)
	}
	if err := r.ChangeSettings(map[string][]string{"delay": {"1s"}, "limit": nil}); err != nil {
		t.Fatal(err)
	}
	if want := map[string][]string{"depth": {"3"}, "delay": {"1s"}}; !reflect.DeepEqual(r.Settings, want) {
		t.Errorf("%v, want %v", r.Settings, want)
	}
	if r.StopAtLimit(WhyLimit); r.State != Stopping || r.Why != WhyLimit || !errors.Is(r.AtLimit(), policy.ErrLimit) {
		t.Errorf("%+v is not stopped", r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Parse(data); err != nil || back.State != r.State || !reflect.DeepEqual(back.Settings, r.Settings) {
		t.Errorf("%+v is read as %+v (%v)", r, back, err)
	}
	if none, err := Parse(nil); err != nil || none.State != Waiting {
		t.Errorf("no record: %+v, %v", none, err)
	}
}

// A crawl that is done may be started to visit its pages again.
func TestADoneCrawlVisitsPagesAgain(t *testing.T) {
	for _, c := range []struct {
		was, now map[string][]string
		ok       bool
	}{
		{map[string][]string{"delay": {"1s"}}, nil, false},
		{map[string][]string{"delay": {"1s"}}, map[string][]string{DueKey: {"true"}}, true},
		{map[string][]string{RecrawlKey: {"24h"}}, nil, true},
		{map[string][]string{RecrawlKey: {"24h"}}, map[string][]string{RecrawlKey: nil}, false},
	} {
		r := Record{State: Done, Seeds: 1, Settings: c.was}
		if err := r.Start(c.now, false); (err == nil) != c.ok {
			t.Errorf("%v, then %v: %v", c.was, c.now, err)
		}
	}
}

func TestLimits(t *testing.T) {
	l := Limits{Pages: 10, Bytes: 1000, Time: time.Minute}
	for _, c := range []struct {
		pages, bytes int64
		ran          time.Duration
		why          string
	}{{9, 999, 59 * time.Second, ""}, {10, 0, 0, WhyLimit}, {0, 1000, 0, WhySize}, {0, 0, time.Minute, WhyTime}} {
		if why := l.Reached(c.pages, c.bytes, c.ran); why != c.why {
			t.Errorf("%+v: %q", c, why)
		}
	}
	if why := (Limits{}).Reached(1e9, 1e9, time.Hour); why != "" {
		t.Errorf("a crawl without limits reached its %s", why)
	}
	r := Record{State: Paused}
	if r.StopAtLimit(WhySize); r.State != Paused || r.AtLimit() != nil {
		t.Errorf("a paused crawl reached its size limit: %+v", r)
	}
	if r.StopAtLimit(WhyTime); r.State != Stopping || !strings.Contains(r.AtLimit().Error(), "--time-limit") {
		t.Errorf("a paused crawl ignores its time limit: %+v", r)
	}
	if err := r.Start(nil, false); err != nil || !r.Started.Equal(r.Changed) || r.AtLimit() != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
