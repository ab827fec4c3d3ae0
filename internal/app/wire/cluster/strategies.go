package cluster

import (
	"cmp"
	"fmt"
	"strings"

	"kumo/internal/app/admin"
	"kumo/internal/app/node"
	"kumo/internal/base/advice"
	"kumo/internal/base/secret"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/hub"
	"kumo/internal/cluster/strategy/shard"
)

type strategyConfig struct {
	shard   shard.Config
	hub     *hub.Config
	balance *balance.Config
}

// Strategies returns the values of NodeOptions.Strategy.
func Strategies() []string {
	return []string{"shard", "shard/paper", "shard/jump", "shard/ring", "hub", "hub/paper", "balance", "balance/paper",
		mesh.Strategy, mesh.StrategyPaper}
}

// IsMesh reports whether a strategy has no servers: NodeOptions.Strategy.
func IsMesh(strategy string) bool { return strategy == mesh.Strategy || strategy == mesh.StrategyPaper }

// Splitters returns the values of NodeOptions.Splitter.
func Splitters() []string {
	return []string{balance.Exact.String(), balance.Even.String(), balance.Hash.String()}
}

// HashKeys returns the values of NodeOptions.HashBy.
func HashKeys() []string { return shard.Keys() }

// A Learning configures the network of balance/paper.
type Learning = balance.Learning

// PaperLearning returns the defaults of balance/paper.
func PaperLearning() Learning { return balance.PaperLearning() }

func (o *NodeOptions) parseStrategy() (p strategyConfig, err error) {
	name, way, _ := strings.Cut(cmp.Or(o.Strategy, "shard"), "/")
	switch name {
	case "hub":
		if p.hub, err = parseHub(way, o.Preset); err != nil {
			return p, err
		}
		p.hub.Key, err = tableKey(o.Secret)
	case "balance":
		switch {
		case way != "" && way != paper:
			return p, advice.Usage("strategy balance/%s: use balance/paper, or balance, with one of these splitters: %s", way,
				strings.Join(Splitters(), ", "))
		case way != "" && o.Splitter != "":
			return p, advice.Usage("splitter %q is for the strategy balance, not for %s", o.Splitter, o.Strategy)
		}
		if p.balance, err = parseBalance(cmp.Or(way, o.Splitter), o.Preset, o.Learning); err != nil {
			return p, err
		}
		p.balance.Key, err = tableKey(o.Secret)
	case "shard":
		if way != "" {
			if p.shard.Second, err = shard.ParseSecond(way); err != nil {
				return p, advice.Usage("%w", err)
			}
		}
		if p.shard.Key, err = shard.ParseKey(cmp.Or(o.HashBy, shard.ByHost.String())); err != nil {
			return p, advice.Usage("%w", err)
		}
	default:
		return p, advice.Usage("strategy %q: use %s", name, strings.Join(Strategies(), ", "))
	}
	if p.balance == nil && o.Splitter != "" {
		return p, advice.Usage("splitter %q is for the strategy balance, not for %s", o.Splitter, name)
	}
	if name != "shard" && o.HashBy != "" {
		return p, advice.Usage("hash key %q is for the strategy shard, not for %s", o.HashBy, name)
	}
	return p, err
}

const paper = "paper"

func parseBalance(splitter, preset string, learning *Learning) (*balance.Config, error) {
	cfg := balance.LAN()
	if preset == "wan" {
		cfg = balance.WAN()
	}
	var err error
	if cfg.Splitter, err = balance.ParseSplitter(splitter); err != nil {
		return nil, advice.Usage("%w", err)
	}
	if cfg.Splitter == balance.Paper {
		cfg.Learning = PaperLearning()
		if learning != nil {
			cfg.Learning = *learning
		}
		if err := cfg.Learning.Check(); err != nil {
			return nil, advice.Usage("%w", err)
		}
	}
	return &cfg, nil
}

func parseHub(way, preset string) (*hub.Config, error) {
	cfg := hub.LAN()
	if preset == "wan" {
		cfg = hub.WAN()
	}
	switch way {
	case "":
	case "paper":
		cfg.FetchFirst, cfg.ProbeAll = true, true
	default:
		return nil, advice.Usage("strategy hub/%s: use hub or hub/paper", way)
	}
	return &cfg, nil
}

// tableKey returns the hash key of the leader's table. It prevents outsiders from choosing host names that collide. A
// cluster without a secret runs on one machine.
func tableKey(s secret.Secret) (key hosttable.Key, err error) {
	if s.IsZero() {
		return key, nil
	}
	b, err := s.Derive("host table", len(key))
	copy(key[:], b)
	return key, err
}

// layout returns the configuration that all nodes of the cluster must agree on.
func (p *strategyConfig) layout(preset string) string {
	if p.hub != nil {
		way := "hub"
		if p.hub.FetchFirst {
			way = "hub/paper"
		}
		return fmt.Sprintf("protocol %d, %s, preset %s", node.Protocol, way, preset)
	}
	if p.balance != nil && p.balance.Splitter == balance.Paper {
		l := p.balance.Learning
		return fmt.Sprintf(paperLayout, node.Protocol, l.Hidden, l.Rate, l.Threshold, preset)
	}
	if p.balance != nil {
		return fmt.Sprintf("protocol %d, balance/%v, preset %s", node.Protocol, p.balance.Splitter, preset)
	}
	layout := fmt.Sprintf("protocol %d, shard %v of %d slots, preset %s", node.Protocol, p.shard.Second, p.shard.Slots,
		preset)
	if p.shard.Key != shard.ByHost {
		layout += hashBy + p.shard.Key.String()
	}
	return layout
}

// hashBy precedes the hash key in a layout. The default key has none.
const hashBy = ", by "
const paperLayout = "protocol %d, balance/paper with %d hidden units, learning rate %g, error threshold %g, preset %s"

// parseLayout parses the layout in the table of members.
func parseLayout(layout string) (*strategyConfig, error) {
	var protocol int
	var way, preset string
	p := new(strategyConfig)
	text, key, keyed := strings.Cut(layout, hashBy)
	// n is sufficient; the error adds nothing.
	n, _ := fmt.Sscanf(text, "protocol %d, shard %s of %d slots, preset %s", &protocol, &way, &p.shard.Slots, &preset)
	if n == 4 && protocol == node.Protocol {
		var err error
		p.shard.Second, err = shard.ParseSecond(way)
		if keyed && err == nil {
			p.shard.Key, err = shard.ParseKey(key)
		}
		return p, err
	}
	var l Learning
	if n, _ = fmt.Sscanf(layout, paperLayout, &protocol, &l.Hidden, &l.Rate, &l.Threshold, &preset); n == 5 &&
		protocol == node.Protocol {
		var err error
		p.balance, err = parseBalance(paper, preset, &l)
		return p, err
	}
	if n, _ = fmt.Sscanf(layout, "protocol %d, %s preset %s", &protocol, &way, &preset); n == 3 &&
		protocol == node.Protocol {
		var err error
		switch name, way, _ := strings.Cut(strings.TrimSuffix(way, ","), "/"); name {
		case "hub":
			p.hub, err = parseHub(way, preset)
			return p, err
		case "balance":
			p.balance, err = parseBalance(way, preset, nil)
			return p, err
		}
	}
	return nil, advice.With(fmt.Errorf("this cluster uses %q, which this kumo does not support", layout),
		"use the kumo version of the nodes")
}

// placement returns the placement for the nodes' layout.
func (o *NodeOptions) placement(layout string) (*admin.Placement, error) {
	p, err := parseLayout(layout)
	if err != nil {
		return nil, err
	}
	if p.hub == nil && p.balance == nil {
		return &admin.Placement{Strategy: "shard", HashesURLs: p.shard.Key == shard.ByURL,
			Owner: func(members []strategy.Member, host string) strategy.Node {
				owner, _ := shard.New(p.shard).Place(members).Owner(host)
				return owner
			}}, nil
	}
	key, err := tableKey(o.Secret)
	if err != nil {
		return nil, err
	}
	if p.balance != nil {
		return balancePlacement(p.balance, key), nil
	}
	return &admin.Placement{Strategy: "hub",
		Table: func(read func(func(uint64, []byte) error) error, each func(central.Host) bool) error {
			return central.ReadTable(key, nil, read, each)
		}}, nil
}

// member creates a node's member, and the strategy if that decides host by host.
func (p *strategyConfig) member(cfg quorum.Config) (member.Member, strategy.Strategy) {
	switch {
	case p.hub != nil:
		h := *p.hub
		h.Self = cfg.Self
		return quorum.New(cfg), hub.New(h)
	case p.balance != nil:
		b := *p.balance
		b.Self = cfg.Self
		return quorum.New(cfg), balance.New(b)
	}
	cfg.Place, cfg.Slot = shard.New(p.shard), p.shard.FreeSlot
	return quorum.New(cfg), nil
}

var _ strategy.StatusReporter = (*central.Strategy)(nil)

// balancePlacement returns the placement of the strategy balance.
func balancePlacement(cfg *balance.Config, key hosttable.Key) *admin.Placement {
	return &admin.Placement{Strategy: admin.Balance,
		Table: func(read func(func(uint64, []byte) error) error, each func(central.Host) bool) error {
			_, err := balance.ReadLog(key, read, each)
			return err
		},
		Model: func(read func(func(uint64, []byte) error) error) (*model.Model, []model.Sample, error) {
			samples, err := balance.ReadLog(key, read, func(central.Host) bool { return false })
			if err != nil {
				return nil, nil, err
			}
			return balance.TrainModel(*cfg, samples), samples, nil
		}}
}
