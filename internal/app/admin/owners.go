package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/node"
	"kumo/internal/base/advice"
	"kumo/internal/base/item"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
)

// A HostQuery selects hosts whose owners are wanted.
type HostQuery struct {
	Names    []string      // hosts or domains; a domain selects all hosts in it, on any port; empty: all hosts
	Parked   bool          // only hosts that no node reaches
	Limit    int           // maximum number of listed hosts; 0: no limit
	Slices   *item.Slices  // how the crawl's hosts are divided
	Patience time.Duration // maximum time without a message from the cluster
}

// A Placement determines the owners of hosts, by a hash or by a table.
type Placement struct {
	Strategy   string // the strategy's name
	HashesURLs bool   // the strategy hashes URLs instead of hosts
	// Owner computes the owner of a host by a hash; nil if a table determines it.
	Owner func(members []strategy.Member, host string) strategy.Node
	// Table builds the table of hosts from the entries of a log and calls each with its hosts. read calls apply with
	// each entry.
	Table func(read func(apply func(number uint64, data []byte) error) error, each func(central.Host) bool) error
	// Model learns a model from the entries of a log, and returns its samples, too; nil if the strategy does not learn.
	Model func(read func(apply func(number uint64, data []byte) error) error) (*model.Model, []model.Sample, error)
}

// ErrNoHostList means that owners follow from a hash, so that there is no list of hosts.
var ErrNoHostList = errors.New("hosts are assigned by hash, so there is no list of hosts")

// checkNames returns an error if the query names no hosts, for strategies that assign hosts by hash.
func (q *HostQuery) checkNames(strategy string) error {
	switch {
	case q.Parked:
		return advice.With(fmt.Errorf("no host is ever parked with the strategy %s: %w", strategy, ErrNoHostList),
			"kumo hosts -o FOLDER lists the hosts with pending URLs of one node, and why they wait")
	case len(q.Names) == 0:
		return advice.With(fmt.Errorf("the strategy is %s: %w", strategy, ErrNoHostList),
			"name hosts to see their owners; kumo hosts -o FOLDER lists the hosts with pending URLs of one node")
	}
	return nil
}

// Owners returns the owners of the hosts. A leader's table is read from its log; hashes are computed.
func (c *client) Owners(ctx context.Context, q HostQuery) (*inspect.Owners, error) {
	ctx, w := withIdleTimeout(ctx, q.Patience)
	defer w.stop()
	t, p, err := c.members(ctx)
	if err != nil {
		return nil, err
	}
	if p.Owner != nil {
		return p.ownersByHash(t, &q)
	}
	l := &ownerList{owners: inspect.Owners{Moving: t.Epoch != t.Finalized}, limit: q.Limit,
		by: map[strategy.Node]*inspect.OwnedBy{}, table: t, placement: p}
	m := newMatcher(q.Names)
	if err := c.readTable(ctx, w, p, func(h central.Host) {
		if m.match(h.Name) {
			l.add(h, !q.Parked || h.State == string(inspect.HostParked))
		}
	}); err != nil {
		return nil, err
	}
	l.owners.Missing = m.missing()
	return l.all(), nil
}

func (c *client) Owner(ctx context.Context, host, self string, patience time.Duration) (*inspect.Owned, error) {
	ctx, w := withIdleTimeout(ctx, patience)
	defer w.stop()
	t, p, err := c.members(ctx)
	if err != nil {
		return nil, err
	}
	var o *inspect.Owned
	if p.Owner != nil {
		o = p.ownedByHash(t, host)
	} else if err := c.readTable(ctx, w, p, func(h central.Host) {
		if h.Name == host {
			o = p.ownedFromTable(h, t)
		}
	}); err != nil || o == nil {
		return nil, err
	}
	o.Here = o.Node == self
	o.Address = c.addressOf(ctx, o.Node)
	return o, nil
}

// addressOf returns the address of a node's API; "" if it has not reported one.
func (c *client) addressOf(ctx context.Context, n string) string {
	_, all, err := c.control.Status(ctx)
	if i := slices.IndexFunc(all, func(s node.Status) bool { return string(s.Node) == n }); err == nil && i >= 0 {
		return all[i].Address
	}
	return ""
}

// members reads the table of members and the placement that it defines.
func (c *client) members(ctx context.Context) (*quorum.Table, *Placement, error) {
	e, err := c.cfg.Bus.Get(ctx, quorum.TableKey)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read the table of members: %w", cmp.Or(context.Cause(ctx), err))
	case e.Value == nil:
		return nil, nil, advice.With(errors.New("the crawl was not started yet: hosts have no owners"),
			"start it with kumo start")
	}
	t, err := quorum.ParseTable(e.Value)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.cfg.Placement(t.Layout)
	return t, p, err
}

// readTable calls f with each host in the leader's table.
func (c *client) readTable(ctx context.Context, w *idleTimeout, p *Placement, f func(central.Host)) error {
	if err := p.Table(c.logReader(ctx, w), func(h central.Host) bool { f(h); return true }); err != nil {
		return fmt.Errorf("read the control unit's log: %w", err)
	}
	return nil
}

func (c *client) logReader(ctx context.Context, w *idleTimeout) func(apply func(number uint64,
	data []byte) error) error {
	return func(apply func(number uint64, data []byte) error) error {
		err := c.cfg.Bus.Read(ctx, node.StrategyLog, 0, func(number uint64, data []byte) error {
			w.timer.Reset(w.patience)
			if err := apply(number, data); err != nil {
				return advice.With(fmt.Errorf("entry %d: %w", number, err), "use the kumo version and the secret of the nodes")
			}
			return nil
		})
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		}
		return err
	}
}

// ownersByHash returns the owners of the named hosts, computed by a hash.
func (p *Placement) ownersByHash(t *quorum.Table, q *HostQuery) (*inspect.Owners, error) {
	if err := q.checkNames(cmp.Or(p.Strategy, "shard")); err != nil {
		return nil, err
	}
	all := &inspect.Owners{Moving: t.Epoch != t.Finalized}
	for _, host := range q.Names {
		for slice := range q.Slices.All(host) {
			all.Hosts = append(all.Hosts, *p.ownedByHash(t, slice))
		}
	}
	return all, nil
}

func (p *Placement) ownedByHash(t *quorum.Table, host string) *inspect.Owned {
	owner := p.Owner(t.Members, host)
	return &inspect.Owned{Host: host, Owner: owner.Name(), Node: string(owner), State: inspect.HostHashed}
}

// ownedFromTable converts an entry of the leader's table.
func (p *Placement) ownedFromTable(h central.Host, t *quorum.Table) *inspect.Owned {
	o := &inspect.Owned{Host: h.Name, Owner: h.Owner.Name(), Node: string(h.Owner), Gone: hasLeft(h.Owner, t),
		State: inspect.HostState(h.State), Since: h.Since, Rounds: h.Round, Moved: h.Moved, Again: h.RetryAt}
	if p.Strategy == Balance && o.State == inspect.HostReached { // the strategy assigns hosts without probing them
		o.State = inspect.HostGiven
	}
	for _, n := range h.Failed {
		o.Failed = append(o.Failed, n.Name())
	}
	slices.Sort(o.Failed)
	return o
}

func hasLeft(n strategy.Node, t *quorum.Table) bool {
	return !slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == n })
}

// An idleTimeout cancels a context when no data has arrived for some time. Reading a large log may take longer in
// total.
type idleTimeout struct {
	timer    *time.Timer
	patience time.Duration
	cancel   context.CancelCauseFunc
}

func withIdleTimeout(ctx context.Context, patience time.Duration) (context.Context, *idleTimeout) {
	patience = cmp.Or(patience, time.Minute)
	ctx, cancel := context.WithCancelCause(ctx)
	silent := fmt.Errorf("no answer from the cluster for %v", patience)
	return ctx, &idleTimeout{time.AfterFunc(patience, func() { cancel(silent) }), patience, cancel}
}

func (w *idleTimeout) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
