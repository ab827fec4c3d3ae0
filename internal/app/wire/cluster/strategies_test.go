package cluster

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/advice"
)

// The layout that nodes write into the table of members can be parsed.
func TestLayoutIsRead(t *testing.T) {
	all := Strategies()
	for _, splitter := range Splitters() {
		all = append(all, "balance "+splitter)
	}
	for _, key := range HashKeys() {
		all = append(all, "shard "+key, "shard/paper "+key)
	}
	for _, name := range all {
		if IsMesh(name) { // it has no table
			continue
		}
		name, option, _ := strings.Cut(name, " ")
		for _, preset := range Presets() {
			o := NodeOptions{Strategy: name, Preset: preset, Slots: 77}
			if name == "balance" {
				o.Splitter = option
			} else {
				o.HashBy = option
			}
			s, err := o.strategy()
			if err != nil {
				t.Fatal(err)
			}
			layout := s.layout(preset)
			p, err := parseLayout(layout)
			switch {
			case err != nil || (p.hub == nil) != (s.hub == nil) || (p.balance == nil) != (s.balance == nil):
				t.Errorf("%s: %+v, %v", layout, p, err)
			case p.balance != nil && *p.balance != *s.balance:
				t.Errorf("%s: %+v, want %+v", layout, *p.balance, *s.balance)
			case p.hub == nil && p.balance == nil && p.shard != s.shard:
				t.Errorf("%s: %+v, want %+v", layout, p.shard, s.shard)
			case p.hub != nil && *p.hub != *s.hub:
				t.Errorf("%s: %+v, want %+v", layout, *p.hub, *s.hub)
			}
		}
	}
	for _, bad := range []string{"", "protocol 9, hub, preset lan", "protocol 3, luck, preset lan",
		"protocol 3, shard luck of 3 slots, preset lan", "protocol 3, hub/luck, preset lan",
		"protocol 3, balance/luck, preset lan", "protocol 3, shard paper of 3 slots, preset lan, by luck"} {
		if p, err := parseLayout(bad); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func TestWhatCannotBeANode(t *testing.T) {
	for what, o := range map[string]struct {
		NodeOptions
		job job.Job
	}{
		"no name":       {NodeOptions{Listen: "127.0.0.1:1"}, job.Job{Dir: t.TempDir()}},
		"no folder":     {NodeOptions{Listen: "127.0.0.1:1"}, job.Job{Name: "test"}},
		"bad preset":    {NodeOptions{Preset: "moon"}, job.Job{Name: "test", Dir: t.TempDir()}},
		"bad strategy":  {NodeOptions{Strategy: "luck"}, job.Job{Name: "test", Dir: t.TempDir()}},
		"bad hash key":  {NodeOptions{HashBy: "luck"}, job.Job{Name: "test", Dir: t.TempDir()}},
		"hub hashes":    {NodeOptions{Strategy: "hub", HashBy: "url"}, job.Job{Name: "test", Dir: t.TempDir()}},
		"bad second":    {NodeOptions{Strategy: "shard/none"}, job.Job{Name: "test", Dir: t.TempDir()}},
		"no one to ask": {NodeOptions{}, job.Job{Name: "test", Dir: t.TempDir()}},
	} {
		if _, err := OpenNode(t.Context(), &o.job, o.NodeOptions); err == nil {
			t.Errorf("%s: it is a node", what)
		}
	}
}

func TestConnectTimeout(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		preset      string
		of          ConnectTimeout
		want        ConnectTimeout
		retry       time.Duration // timeout
		delay       time.Duration // before the first retry
		unsupported bool
	}{
		{"lan", ConnectTimeout{}, ConnectTimeout{2000 * ms, 500 * ms, 4000 * ms}, 8000 * ms, 10 * time.Second, false},
		{"wan", ConnectTimeout{}, ConnectTimeout{200 * ms, 50 * ms, 400 * ms}, 5000 * ms, 10 * time.Second, false},
		{"wan", ConnectTimeout{Initial: 2000 * ms}, ConnectTimeout{2000 * ms, 500 * ms, 4000 * ms}, 8000 * ms, 10 * time.Second,
			false},
		{"lan", ConnectTimeout{Max: 9000 * ms}, ConnectTimeout{2000 * ms, 500 * ms, 9000 * ms}, 8000 * ms, 10 * time.Second,
			false},
		{"lan", ConnectTimeout{1000 * ms, 1000 * ms, 1000 * ms}, ConnectTimeout{1000 * ms, 1000 * ms, 1000 * ms}, 8000 * ms,
			5 * time.Second, false},
		{"wan", ConnectTimeout{Initial: 50 * ms}, ConnectTimeout{50 * ms, 50 * ms / 4, 100 * ms}, 5000 * ms,
			2500 * ms, false},
		{"lan", ConnectTimeout{Initial: 50 * ms}, ConnectTimeout{50 * ms, 50 * ms / 4, 100 * ms}, 8000 * ms, time.Second,
			false},
		{"lan", ConnectTimeout{Min: 3000 * ms}, ConnectTimeout{}, 0, 0, true},
		{"lan", ConnectTimeout{Max: 1000 * ms}, ConnectTimeout{}, 0, 0, true},
		{"lan", ConnectTimeout{Initial: -1}, ConnectTimeout{}, 0, 0, true},
		{"lan", ConnectTimeout{Initial: 2 * ms}, ConnectTimeout{}, 0, 0, true},
		{"lan", ConnectTimeout{Initial: time.Hour}, ConnectTimeout{}, 0, 0, true},
	} {
		o := NodeOptions{Strategy: "hub/paper", Preset: c.preset, ConnectTimeout: c.of}
		s, err := o.strategy()
		if c.unsupported {
			if !advice.IsUsage(err) {
				t.Errorf("%+v: %v", c.of, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.of, err)
			continue
		}
		if got := (ConnectTimeout{s.hub.Timeout, s.hub.MinTimeout, s.hub.MaxTimeout}); got != c.want ||
			s.hub.RetryTimeout != c.retry || s.hub.RetryDelay != c.delay {
			t.Errorf("%s %+v: got %+v, %v and %v", c.preset, c.of, got, s.hub.RetryTimeout, s.hub.RetryDelay)
		}
	}
	o := NodeOptions{Strategy: "shard", ConnectTimeout: ConnectTimeout{Initial: time.Second}}
	if _, err := o.strategy(); !advice.IsUsage(err) {
		t.Errorf("shard with a connection timeout: %v", err)
	}
}
