package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/meshnode/control"
	"kumo/internal/app/node"
	"kumo/internal/app/nodequery"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/chronicle"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/engine/seeds"
)

// A meshClient sends requests to any node of a mesh crawl.
type meshClient struct {
	control attributedClient
	close   func() error
}

type attributedClient struct {
	*control.Client
	by string
}

// Do sends a request and returns the response.
func (a attributedClient) Do(ctx context.Context, q control.Request) (*control.Response, error) {
	q.By = a.by
	return a.Client.Do(ctx, q)
}

// NewMesh returns a client that sends requests to one of the connected nodes. It receives the messenger's messages. The
// caller closes the client, which calls close.
func NewMesh(m bus.Messenger, nodes []strategy.Node, close func() error) Client {
	return &meshClient{attributedClient{Client: control.NewClient(m, nodes)}, close}
}

func (c *meshClient) As(by string) Client {
	return &meshClient{attributedClient{c.control.Client, by}, c.close}
}

func (c *meshClient) Trouble() error { return nil }

func (c *meshClient) Close() error {
	c.control.Close()
	return c.close()
}

func (c *meshClient) Strategy(context.Context) (Strategy, error) { return Strategy{Name: mesh}, nil }

const mesh = "mesh"

// Links returns none: a host's name determines which nodes remember its URLs.
func (c *meshClient) Links(context.Context, string) (l inspect.Links, err error) { return l, nil }

func (c *meshClient) SetSamples(context.Context, []model.Sample) error { return noModelError(mesh) }

func (c *meshClient) Model(context.Context, string, time.Duration) (*inspect.Model, []model.Sample, error) {
	return nil, nil, noModelError(mesh)
}

// errNoDrain is returned for a mesh crawl, whose nodes have no common registry.
var errNoDrain = advice.With(errors.New("a mesh crawl has no registry for such a request"),
	"send SIGTERM to the node's process: it hands over its hosts and leaves")

// Drain is not supported.
func (c *meshClient) Drain(context.Context, string) error { return errNoDrain }

// ForgetDrain is not supported.
func (c *meshClient) ForgetDrain(context.Context, string) error { return errNoDrain }

// Servers is not supported.
func (c *meshClient) Servers(context.Context) ([]Server, error) {
	return nil, errors.New("a mesh crawl has no servers")
}

func (c *meshClient) Record(ctx context.Context) (desired.Record, error) {
	a, err := c.control.Do(ctx, control.Request{Do: control.Read})
	if err != nil {
		return desired.Record{}, err
	}
	return a.Record, nil
}

// Results returns one report of all nodes, merged over the tree of their IDs.
func (c *meshClient) Results(ctx context.Context, crawl string) (*stats.Report, error) {
	a, err := c.control.Do(ctx, control.Request{Do: control.Results})
	if err != nil {
		return nil, err
	}
	all := new(stats.Report)
	if err := json.Unmarshal(a.Results, all); err != nil {
		return nil, fmt.Errorf("read the report of all nodes: %w", err)
	}
	if a.Missing > 0 {
		return nil, fmt.Errorf("gather the nodes' reports: %s of the key space did not answer: try again in some seconds",
			stats.Count(int64(a.Missing), "parts"))
	}
	if all.Crawl, all.Ended = crawl, string(a.Record.State); a.Record.Why != "" {
		all.Ended += " (" + a.Record.Why + ")"
	}
	return all, nil
}

func (c *meshClient) Start(ctx context.Context, all []settings.Setting, typed []string, files ...*seeds.File) error {
	record := settings.Map(all)
	if err := job.CheckMeshSettings(record); err != nil {
		return err
	}
	if err := job.CheckMeshSinks(record[job.SinkKey]); err != nil {
		return err
	}
	some, err := c.addSeeds(ctx, true, typed, files)
	if err != nil {
		return err
	}
	_, err = c.control.Do(ctx, control.Request{Do: control.Start, Settings: record, Seeded: some})
	return err
}

func (c *meshClient) Add(ctx context.Context, typed []string, files ...*seeds.File) error {
	_, err := c.addSeeds(ctx, false, typed, files)
	return err
}

// addSeeds adds seeds, list by list, and reports whether there were any.
func (c *meshClient) addSeeds(ctx context.Context, start bool, typed []string, files []*seeds.File) (some bool,
	err error) {
	urls, err := parseSeeds(typed)
	if err != nil {
		return false, err
	}
	var failed error
	for list := range desired.SeedLists(eachSeed(urls, files, &failed)) {
		some = true
		if _, err := c.control.Do(ctx, control.Request{Do: control.Add, Seeds: list, Seeded: start}); err != nil {
			return some, fmt.Errorf("add seeds: %w", err)
		}
	}
	return some, failed
}

func (c *meshClient) CountKnown(ctx context.Context, typed []string) (k node.Known, err error) {
	urls, err := parseSeeds(typed)
	if err != nil {
		return k, err
	}
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	for part := range slices.Chunk(urls[:min(len(urls), maxKnownURLs)], control.MaxURLs) {
		a, err := c.control.Do(ctx, control.Request{Do: control.CountKnown, URLs: part})
		if err != nil {
			break // the caller sees the error when it adds the seeds
		}
		k.New, k.Known = k.New+a.Known.New, k.Known+a.Known.Known
	}
	k.Unsure = len(urls) - k.New - k.Known
	return k, nil
}

func (c *meshClient) Tune(ctx context.Context, f func(desired.Record) ([]settings.Setting, error)) error {
	for {
		a, err := c.control.Do(ctx, control.Request{Do: control.Read})
		if err != nil {
			return err
		}
		if a.Record.Settings == nil {
			return desired.ErrNotStarted
		}
		all, err := f(a.Record)
		if err != nil {
			return err
		}
		changed := settings.Map(all)
		if err := job.CheckMeshSettings(changed); err != nil {
			return err
		}
		_, err = c.control.Do(ctx, control.Request{Do: control.Tune, Settings: changed, Version: a.Version})
		if !errors.Is(err, control.ErrStale) {
			return err
		}
	}
}

func (c *meshClient) set(ctx context.Context, to desired.State) error {
	_, err := c.control.Do(ctx, control.Request{Do: control.Set, State: to})
	return err
}

func (c *meshClient) Pause(ctx context.Context) error  { return c.set(ctx, desired.Paused) }
func (c *meshClient) Resume(ctx context.Context) error { return c.set(ctx, desired.Running) }
func (c *meshClient) Stop(ctx context.Context) error   { return c.set(ctx, desired.Stopping) }

// Cluster returns the state of all nodes, summed up by the node that is asked.
func (c *meshClient) Cluster(ctx context.Context, crawl string) (*inspect.Cluster, error) {
	a, err := c.control.Do(ctx, control.Request{Do: control.Inspect})
	if err != nil {
		return nil, err
	}
	s := a.Sums
	if s == nil {
		return nil, errors.New("gather the nodes' reports: the response has no sums")
	}
	now := time.Now()
	all := clusterOf(crawl, a.Record, nil, now)
	all.Settled, all.Strategy = s.Missing == 0, mesh
	all.Gathered = &inspect.Gathered{By: s.By.Name(), Nodes: s.Nodes, Missing: s.Missing, Idle: s.Idle,
		Age: roundTenth(s.Age.Seconds()), Took: roundTenth(s.Took.Seconds())}
	all.Gone = inspect.Gone{Nodes: s.DepartedNodes, Pages: s.DepartedPages, Again: s.Figure(control.SumRefetched)}
	all.Totals = inspect.Load{Pages: s.Figure(control.SumPages) + s.DepartedPages,
		Rate:  roundTenth(float64(s.Figure(control.SumMilliRate)) / 1000),
		Hosts: int(s.Figure(control.SumHosts)), Waiting: int(s.Figure(control.SumWaiting)),
		Known: int(s.Figure(control.SumKnown)), Outbox: int(s.Figure(control.SumOutbox)),
		InFlight: int(s.Figure(control.SumInFlight)), MessageBytes: s.Figure(control.SumMessageBytes)}
	var met [][]chronicle.Event
	for _, r := range s.All() {
		all.Nodes = append(all.Nodes, reported(&r, now))
		met = append(met, r.Events)
	}
	all.Events = toEvents(chronicle.Merge(met...))
	sortNodes(all.Nodes)
	all.Measure()
	return all, nil
}

func reported(r *control.Report, now time.Time) inspect.Node {
	n := inspect.Node{Node: r.Node, Name: strategy.Node(r.Node).Name(), Is: inspect.NodeJoining, Slot: -1, Clock: r.Clock,
		Version: r.Version, Address: r.Address, Browser: r.Browser, Idle: r.Idle,
		CutOff: roundTenth(r.Offline), CutOffWhy: r.OfflineReason,
		EndsIn: roundTenth(r.EndsIn), Growth: roundTenth(r.Growth), Forecast: r.Forecast,
		Stalled: roundTenth(r.Stalled), StalledBy: r.StalledBy, StallWhy: r.StallWhy, StallDo: r.StallDo,
		Age: roundTenth(now.Sub(r.Clock).Seconds()),
		Load: inspect.Load{Pages: r.Pages, Rate: roundTenth(r.Rate), Hosts: r.Hosts, Waiting: r.Waiting, Known: r.Known,
			Outbox: r.Outbox, InFlight: r.InFlight, MessageBytes: r.MessageBytes},
		Peering: &inspect.Peering{ID: overlay.IDOf(r.Node).String(), Peers: r.Peers, Backlog: roundTenth(r.Backlog),
			Level: r.Level, Delegated: r.Delegated, Guests: r.Guests, Alone: roundTenth(r.Alone)}}
	switch {
	case r.State == desired.Waiting || r.State == desired.Stopping:
		n.Is = inspect.NodeWaiting
	case r.Member:
		n.Is = inspect.NodeMember
	}
	return n
}

// Owners returns the nodes that fetch the hosts, and those that remember their URLs.
func (c *meshClient) Owners(ctx context.Context, q HostQuery) (*inspect.Owners, error) {
	if err := q.checkNames(mesh); err != nil {
		return nil, err
	}
	var hosts []string
	for _, name := range q.Names {
		hosts = slices.AppendSeq(hosts, q.Slices.All(name))
	}
	all := &inspect.Owners{}
	for part := range slices.Chunk(hosts, control.MaxHosts) {
		a, err := c.control.Do(ctx, control.Request{Do: control.Locate, Hosts: part})
		if err != nil {
			return nil, err
		}
		for _, l := range a.Locations {
			if l.Target == "" {
				all.Missing = append(all.Missing, l.Host)
				continue
			}
			all.Hosts = append(all.Hosts, *ownedAt(&l))
		}
	}
	return all, nil
}

func (c *meshClient) Owner(ctx context.Context, host, self string, patience time.Duration) (*inspect.Owned, error) {
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	a, err := c.control.Do(ctx, control.Request{Do: control.Locate, Hosts: []string{host}})
	if err != nil || len(a.Locations) != 1 || a.Locations[0].Target == "" {
		return nil, err
	}
	o := ownedAt(&a.Locations[0])
	o.Here = o.Node == self
	return o, nil
}

func ownedAt(l *control.Location) *inspect.Owned {
	o := &inspect.Owned{Host: l.Host, Owner: l.Target.Name(), Node: string(l.Target), State: inspect.HostHashed}
	for _, b := range l.Backups {
		o.Backups = append(o.Backups, string(b))
	}
	return o
}

// BlockedAll has the listed nodes count the pending URLs that the rules would exclude.
func (c *meshClient) BlockedAll(ctx context.Context, rules []string) (*inspect.BlockedAll, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*countTimeout) // reports are gathered first
	defer cancel()
	query := nodequery.Query{Rules: rules}
	a, err := c.control.Do(ctx, control.Request{Do: control.QueryAll, Query: query.Encode()})
	if err != nil {
		return nil, err
	}
	all := inspect.NewBlockedAll()
	if a.Answers == nil {
		return all, nil
	}
	for _, n := range a.Answers.Nodes {
		all.AddNode(strategy.Node(n.Node).Name(), n.Answer)
	}
	all.Unasked = a.Answers.Unasked
	return all, nil
}

// Search has the listed nodes search their indexes.
func (c *meshClient) Search(ctx context.Context, s nodequery.Search) (*nodequery.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout+2*countTimeout)
	defer cancel()
	query := nodequery.Query{Search: &s}
	a, err := c.control.Do(ctx, control.Request{Do: control.QueryAll, Query: query.Encode()})
	if err != nil {
		return nil, err
	}
	found := &nodequery.Found{}
	if a.Answers == nil {
		return found, nil
	}
	for _, n := range a.Answers.Nodes {
		found.Add(strategy.Node(n.Node).Name(), n.Answer)
	}
	if n := a.Answers.Unasked; n > 0 {
		found.Missing = append(found.Missing, stats.Count(int64(n), "nodes")+" could not be asked")
	}
	return found, nil
}
