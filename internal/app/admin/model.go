package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/base/advice"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/balance/model"
)

// Balance is the name of the strategy that learns fetch times.
const Balance = "balance"

// A Strategy describes how the nodes share hosts.
type Strategy struct {
	Name       string // such as "shard"
	HashesURLs bool   // the URLs of a host belong to different nodes
}

func (c *client) Strategy(ctx context.Context) (none Strategy, err error) {
	e, err := c.control.Registry.Get(ctx, quorum.TableKey)
	if err != nil {
		return none, err
	}
	if e.Value != nil {
		t, err := quorum.ParseTable(e.Value)
		if err != nil {
			return none, err
		}
		return c.strategyOf(t.Layout)
	}
	waiting, err := c.waitingNodes(ctx)
	for i := range waiting {
		if layout := waiting[i].Layout; layout != "" && err == nil {
			return c.strategyOf(layout)
		}
	}
	return none, err
}

func (c *client) strategyOf(layout string) (Strategy, error) {
	p, err := c.cfg.Placement(layout)
	if err != nil {
		return Strategy{}, err
	}
	return Strategy{Name: p.Strategy, HashesURLs: p.HashesURLs}, nil
}

// MaxSamples is the number of samples that a crawl retains, the newest ones.
const MaxSamples = 2048

func (c *client) SetSamples(ctx context.Context, samples []model.Sample) error {
	data, err := balance.EncodeSamples(samples)
	if err == nil {
		err = c.control.SetStrategyData(ctx, data)
	}
	if err != nil {
		return fmt.Errorf("store the crawl's samples: %w", err)
	}
	return nil
}

// ErrNoModel means that the strategy has no model.
var ErrNoModel = errors.New("only the strategy balance learns how long nodes take")

func noModelError(strategy string) error {
	return advice.With(fmt.Errorf("the crawl's strategy is %s: %w", strategy, ErrNoModel),
		"start another crawl whose nodes all have --strategy balance")
}

// Model returns the model that a newly elected master would learn.
func (c *client) Model(ctx context.Context, crawl string, patience time.Duration) (*inspect.Model, []model.Sample,
	error) {
	ctx, w := withIdleTimeout(ctx, patience)
	defer w.stop()
	_, p, err := c.members(ctx)
	if err != nil {
		return nil, nil, err
	}
	if p.Model == nil {
		return nil, nil, noModelError(p.Strategy)
	}
	learnt, samples, err := p.Model(c.logReader(ctx, w))
	if err != nil {
		return nil, nil, fmt.Errorf("read the master's log: %w", err)
	}
	_, nodes, err := c.control.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	return modelOf(crawl, learnt, samples, nodes), samples, nil
}

// predicted are the numbers of URLs for which Model predicts times.
var predicted = []int{10, 100, 1000}

func modelOf(crawl string, learnt *model.Model, samples []model.Sample, nodes []node.Status) *inspect.Model {
	r := learnt.Report()
	m := &inspect.Model{Crawl: crawl, Samples: len(samples), Trained: r.Trained, Least: model.DefaultMinSamples,
		HeldBack: r.HeldBack, Error: r.Error, ErrorByPace: r.ByPace, Nodes: []inspect.NodeModel{}}
	by := map[string]*inspect.NodeModel{}
	of := func(name string) *inspect.NodeModel {
		if by[name] == nil {
			by[name] = &inspect.NodeModel{Name: name}
		}
		return by[name]
	}
	for i := range samples {
		n := of(samples[i].Node)
		n.Samples++
		n.Machine = inspect.Machine(samples[i].Machine)
	}
	for i := range nodes {
		if s := &nodes[i]; s.Member && !s.Dead {
			n := of(s.Node.Name())
			n.Member = true
			if s.Machine != nil {
				n.Machine = inspect.Machine(*s.Machine)
			}
		}
	}
	for _, n := range slices.SortedFunc(maps.Values(by), func(a, b *inspect.NodeModel) int {
		return cmp.Compare(a.Name, b.Name)
	}) {
		time, basis := learnt.Time(n.Name, model.Machine(n.Machine))
		n.Basis = basis.String()
		for _, urls := range predicted {
			n.Predictions = append(n.Predictions, inspect.Prediction{URLs: urls, Seconds: time(urls)})
		}
		m.Nodes = append(m.Nodes, *n)
	}
	return m
}
