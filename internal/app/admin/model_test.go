package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/cluster/bus/inproc"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/balance/model"
)

// samplesOf returns samples of two machines, one twice as fast, for batches of 10 to 100 URLs, with 3 s of overhead.
func samplesOf(n int) (all []model.Sample) {
	for i := range n {
		urls, name, pace := 10*(1+i%10), "slow", 10.0
		if i%2 == 1 {
			name, pace = "fast", 20
		}
		all = append(all, model.Sample{Node: name, Machine: model.Machine{Cores: pace / 10, GHz: 2}, URLs: urls,
			Seconds: 3 + float64(urls)/pace})
	}
	return all
}

func TestModel(t *testing.T) {
	nodes := []node.Status{
		{Node: "fast~1", Member: true, Report: node.Report{Machine: &node.Machine{Cores: 2, GHz: 2, MemoryGB: 7}}},
		{Node: "new~1", Member: true, Report: node.Report{Machine: &node.Machine{Cores: 1, GHz: 2}}},
		{Node: "dead~1", Member: true, Dead: true},
	}
	for _, c := range []struct {
		samples         int
		slow, fast, new string             // the basis of predictions
		seconds         map[string]float64 // for 100 URLs
	}{
		{0, "", "nothing", "nothing", map[string]float64{"fast": 100, "new": 100}},
		{10, "pace", "pace", "mean", map[string]float64{"slow": 16, "fast": 10, "new": 12.3}},
		{400, "learnt", "learnt", "learnt", map[string]float64{"slow": 13, "fast": 8, "new": 13}},
	} {
		samples := samplesOf(c.samples)
		m := modelOf("test", balance.TrainModel(balance.LAN(), samples), samples, nodes)
		t.Logf("%d samples: %+v", c.samples, m)
		if m.Samples != c.samples || (m.Trained > 0) != (c.slow == "learnt") || m.Error > 0.1 {
			t.Errorf("%d samples: %+v", c.samples, m)
		}
		by := map[string]inspect.NodeModel{}
		for _, n := range m.Nodes {
			by[n.Name] = n
		}
		for name, basis := range map[string]string{"slow": c.slow, "fast": c.fast, "new": c.new, "dead": ""} {
			n := by[name]
			if n.Basis != basis || n.Member != (name == "fast" || name == "new") {
				t.Errorf("%d samples: %s is %+v", c.samples, name, n)
			}
			if basis == "" {
				continue
			}
			want := c.seconds[name]
			if p := n.Predictions[1]; p.URLs != 100 || math.Abs(p.Seconds-want) > 0.2*want {
				t.Errorf("%d samples: %s takes %.1f s for %d URLs, want %.1f", c.samples, name, p.Seconds, p.URLs, want)
			}
		}
		if by["fast"].Machine.MemoryGB != 7 {
			t.Errorf("the machine is %+v", by["fast"].Machine)
		}
	}
}

// TestStrategyIsKnownBeforeTheStart: waiting nodes report the strategy; once there are members, it is in their table.
func TestStrategyIsKnownBeforeTheStart(t *testing.T) {
	b, err := inproc.New(1).Join("control~1")
	if err != nil {
		t.Fatal(err)
	}
	control := New(Config{Crawl: "test", Bus: b, Close: b.Close, Placement: func(layout string) (*Placement, error) {
		if layout == "new" {
			return nil, errors.New("not known")
		}
		return &Placement{Strategy: "strategy of " + layout}, nil
	}})
	defer control.Close()
	is := func(want string) {
		t.Helper()
		if got, err := control.Strategy(t.Context()); got.Name != want || err != nil {
			t.Errorf("%q (%v), want %q", got.Name, err, want)
		}
	}
	put := func(key string, value []byte) {
		t.Helper()
		e, err := b.Get(t.Context(), key)
		if err == nil {
			_, err = b.Put(t.Context(), key, value, e.Revision)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	waits := func(layout string, clock time.Time) []byte {
		data, err := json.Marshal(node.Report{Name: "a", Layout: layout, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	is("")
	put(node.WaitingPrefix+"a~1", waits("dead", time.Now().Add(-time.Hour)))
	is("")
	put(node.WaitingPrefix+"a~1", waits("waiting", time.Now()))
	is("strategy of waiting")
	table := quorum.Table{Layout: "table", Members: []strategy.Member{{Node: "a~1"}}}
	put(quorum.TableKey, table.Encode())
	is("strategy of table")
	table.Layout = "new"
	put(quorum.TableKey, table.Encode())
	if _, err := control.Strategy(t.Context()); err == nil {
		t.Error("a layout that is not known has a strategy")
	}
}

// TestGive: the registry receives the last samples, up to the number that a crawl stores, even with the longest names.
func TestGive(t *testing.T) {
	b, err := inproc.New(1).Join("control~1")
	if err != nil {
		t.Fatal(err)
	}
	control := New(Config{Crawl: "test", Bus: b, Close: b.Close})
	defer control.Close()
	samples := samplesOf(MaxSamples + 100)
	for i := range samples {
		samples[i].Node = fmt.Sprint(strings.Repeat("x", 1000), i)
	}
	for range 2 { // the second call replaces the first samples
		if err := control.SetSamples(t.Context(), samples); err != nil {
			t.Fatal(err)
		}
	}
	e, err := b.Get(t.Context(), node.StrategyDataKey)
	if err != nil {
		t.Fatal(err)
	}
	n, last := 0, model.Sample{}
	for s, err := range model.ReadJSON(bytes.NewReader(e.Value)) {
		if err != nil {
			t.Fatal(err)
		}
		last = s
		n++
	}
	if n != MaxSamples || last != samples[len(samples)-1] {
		t.Errorf("%d samples are given, the last %+v", n, last)
	}
}
