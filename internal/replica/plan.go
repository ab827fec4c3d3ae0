package replica

import (
	"slices"

	"kumo/internal/xor"
)

// A choice is who holds the keys of a part of the space, as far as the bits say that they have in common.
type choice struct {
	sure []xor.ID // hold all of them
	open []xor.ID // of these, need hold each: the closest to it, which further bits of it decide
	need int      // 0: all is decided; else less than len(open)
}

// undecided is the choice for all keys.
func undecided(nodes []xor.ID, r int) choice {
	if len(nodes) <= r {
		return choice{sure: nodes}
	}
	return choice{open: nodes, need: r}
}

// at is the choice for those keys that have a bit of this value, for bits from the highest to the lowest that splits.
func (c choice) at(bit int, value byte) choice {
	if c.need == 0 {
		return c
	}
	var near, far []xor.ID
	for _, id := range c.open {
		if id.Bit(bit) == value {
			near = append(near, id)
		} else {
			far = append(far, id)
		}
	}
	switch {
	case len(near) == 0 || len(far) == 0:
		return c
	case c.need < len(near):
		return choice{c.sure, near, c.need}
	case c.need == len(near):
		return choice{sure: slices.Concat(c.sure, near)}
	}
	return choice{slices.Concat(c.sure, near), far, c.need - len(near)}
}

// next is the highest bit of a key that decides anything, -1 when none does.
func (c choice) next() int {
	bit := -1
	if c.need > 0 {
		for _, id := range c.open[1:] {
			bit = max(bit, id.FirstDiff(c.open[0]))
		}
	}
	return bit
}

func (c choice) has(id xor.ID) bool {
	return slices.Contains(c.sure, id) || c.need > 0 && slices.Contains(c.open, id)
}

// A planner finds what one node sends.
type planner struct {
	Change
	self    xor.ID
	r       int
	changed []xor.ID // who came and who went
	moves   []Move
}

// list adds what is sent of a list. Where all that the node holds of it goes to the same nodes, the list is one part.
func (p *planner) list(keys xor.Pattern, before, after choice) {
	var parts []Move
	p.divide(keys, before, after, &parts)
	var sent []Move
	for _, m := range parts {
		if len(m.To) > 0 || m.LookUp > 0 || m.Drop {
			sent = append(sent, m)
		}
	}
	if len(sent) == 0 {
		return
	}
	whole := parts[0]
	if whole.Keys, whole.List = keys, true; !slices.ContainsFunc(parts, whole.differs) {
		sent = []Move{whole}
	}
	p.moves = append(p.moves, sent...)
}

func (m Move) differs(other Move) bool {
	return !slices.Equal(m.To, other.To) || m.LookUp != other.LookUp || m.Drop != other.Drop
}

// divide divides keys until all of a part have the same holders, as far as that is known, and adds a part for all that
// the node holds.
func (p *planner) divide(keys xor.Pattern, before, after choice, parts *[]Move) {
	if !before.has(p.self) {
		return
	}
	if !slices.ContainsFunc(p.changed, func(id xor.ID) bool { return before.has(id) || after.has(id) }) {
		*parts = append(*parts, Move{Keys: keys}) // of which it holds some
		return
	}
	bit := max(p.next(before), p.next(after))
	if bit < 0 {
		*parts = append(*parts, p.move(keys, before, after))
		return
	}
	for value := range byte(2) {
		p.divide(keys.With(bit, value), p.at(before, bit, value), p.at(after, bit, value), parts)
	}
}

// next is the next bit that decides anything, as far as this node can know.
func (p *planner) next(c choice) int {
	if p.blind(c) {
		return -1
	}
	return c.next()
}

// at is a choice for those keys that have a bit of this value, as far as this node can know.
func (p *planner) at(c choice, bit int, value byte) choice {
	if p.blind(c) {
		return c
	}
	return c.at(bit, value)
}

// blind reports whether what is open lies in a bucket with nodes that are not known.
func (p *planner) blind(c choice) bool {
	if p.Capped == nil || c.need == 0 {
		return false
	}
	bucket := p.self.FirstDiff(c.open[0])
	return bucket >= 0 && p.Capped(bucket) && !slices.ContainsFunc(c.open, func(id xor.ID) bool {
		return p.self.FirstDiff(id) != bucket
	})
}

// move is what is sent of keys that have the same holders.
func (p *planner) move(keys xor.Pattern, before, after choice) Move {
	m := Move{Keys: keys, Drop: !after.has(p.self)}
	for _, id := range difference(after.sure, before.sure) {
		if p.sender(before, id) == p.self {
			m.To = append(m.To, id)
		}
	}
	slices.SortFunc(m.To, func(a, b xor.ID) int { return xor.Compare(a, b, p.self) })
	if after.need > 0 && (after.need != before.need || len(difference(before.open, after.open)) > 0) {
		if by := p.sender(before, p.self); by == p.self || slices.Contains(p.After, by) {
			m.LookUp = after.need // by all who are left, as each knows of other nodes
		}
	}
	return m
}

// sender is who of the holders before sends to a new one.
func (p *planner) sender(before choice, to xor.ID) xor.ID {
	var best xor.ID
	found, leaves := false, false
	for _, id := range before.sure {
		if slices.Contains(p.Gone, id) {
			continue
		}
		leaving := !slices.Contains(p.After, id)
		better := !found || leaving && !leaves || leaving == leaves && xor.Compare(id, best, to) < 0
		if better {
			best, found, leaves = id, true, leaving
		}
	}
	return best
}
