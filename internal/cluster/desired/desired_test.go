package desired

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
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
	if r.StopAtLimit(); r.State != Stopping || r.Why != WhyLimit {
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
