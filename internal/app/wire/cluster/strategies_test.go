package cluster

import (
	"strings"
	"testing"

	"kumo/internal/app/job"
)

// The layout that nodes write into the table of members can be parsed.
func TestLayoutIsRead(t *testing.T) {
	all := Strategies()
	for _, splitter := range Splitters() {
		all = append(all, "balance "+splitter)
	}
	for _, name := range all {
		if name == "mesh" { // it has no table
			continue
		}
		name, splitter, _ := strings.Cut(name, " ")
		for _, preset := range Presets() {
			o := NodeOptions{Strategy: name, Splitter: splitter, Preset: preset, Slots: 77}
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
		"protocol 3, balance/luck, preset lan"} {
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
		"bad second":    {NodeOptions{Strategy: "shard/none"}, job.Job{Name: "test", Dir: t.TempDir()}},
		"no one to ask": {NodeOptions{}, job.Job{Name: "test", Dir: t.TempDir()}},
	} {
		if _, err := OpenNode(t.Context(), &o.job, o.NodeOptions); err == nil {
			t.Errorf("%s: it is a node", what)
		}
	}
}
