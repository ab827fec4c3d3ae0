package quorum

import (
	"hash/fnv"

	"kumo/internal/cluster/strategy"
)

// A placement says, under one epoch, to whom goes what a node holds of a host.
type placement interface {
	of(from strategy.Node) destination
}

// A destination says to whom goes what one node holds of a host; "" where it stays. It may be asked by any goroutine.
type destination func(host string) strategy.Node

// placed is the placement of a Placer: hosts go to their owners.
type placed struct{ view strategy.View }

func (p placed) of(from strategy.Node) destination {
	return func(host string) strategy.Node {
		if owner, state := p.view.Owner(host); state == strategy.Owned && owner != from {
			return owner
		}
		return ""
	}
}

// kept is the placement under strategies that are no Placers: members keep what they hold, but for single hosts that
// move to other members; what others held goes to heirs, spread over all members, unless it was about to move.
type kept struct {
	members []strategy.Member
	moves   func(from strategy.Node) map[string]strategy.Node
}

func (k kept) of(from strategy.Node) destination {
	_, stays := find(k.members, from)
	moves := k.moves(from)
	return func(host string) strategy.Node {
		to := moves[host]
		if _, there := find(k.members, to); !there { // who was to have it may have died
			if to = ""; !stays {
				to = fallbackOwner(k.members, host)
			}
		}
		if to == from {
			return ""
		}
		return to
	}
}

// fallbackOwner is the member that gets a host of one who went; "" without members. All that matters is that everybody
// computes the same.
func fallbackOwner(members []strategy.Member, host string) strategy.Node {
	if len(members) == 0 {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(host))
	return members[mix(h.Sum64())%uint64(len(members))].Node
}

// A shift says which hosts a new list of members moves.
type shift uint8

const (
	shiftsAny   shift = iota // from anybody to anybody
	shiftsLeast              // to those that came, and from those that went
	shiftsNone               // from those that went, and single ones
)

func (c *Config) shift() shift {
	switch {
	case c.Place == nil:
		return shiftsNone
	case c.Place.Minimal():
		return shiftsLeast
	}
	return shiftsAny
}

// place is how hosts are placed under an epoch.
func (m *Member) place(epoch uint64) placement {
	if m.cfg.Place == nil {
		return kept{m.table.membersAt(epoch), func(from strategy.Node) map[string]strategy.Node {
			return m.movesUnder(epoch,
				from)
		}}
	}
	return placed{m.cfg.Place.Place(m.table.membersAt(epoch))}
}
