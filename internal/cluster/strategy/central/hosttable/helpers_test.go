package hosttable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kumo/internal/cluster/strategy"
)

var testKey = Key{1, 2, 3}

// crowd returns names that all belong to the first parts, to fill these with few names.
func crowd(n, parts int) []string {
	var all []string
	for i := 0; len(all) < n; i++ {
		name := fmt.Sprintf("www%d.example.org", i)
		if i%97 == 0 {
			name = strings.Repeat("a.long-name.", i%40) + name
		}
		if partOf(testKey.Sum([]byte(name))) < parts {
			all = append(all, name)
		}
	}
	return all
}

func randomRow(dice *rand.Rand, owners int) Row {
	r := Row{State: uint8(dice.Uint32()), Round: uint8(dice.Uint32()), Since: dice.Uint32()}
	if o := dice.IntN(owners + 1); o > 0 {
		r.Owner = strategy.Node(fmt.Sprintf("node%d~1", o))
	}
	return r
}

// content returns the rows of all hosts.
func content(t *testing.T, tab *Table) map[string]Row {
	t.Helper()
	all := map[string]Row{}
	for cursor, done := uint64(0), false; !done; {
		cursor, done = tab.All(cursor, 1000, func(host string, r Row) {
			if _, twice := all[host]; twice {
				t.Errorf("%q is told twice", host)
			}
			all[host] = r
		})
	}
	return all
}

// sound compares a table's counters with its contents.
func (t *Table) sound() error {
	hosts, bytes, owned := 0, int64(0), make([]int, len(t.nodes.all))
	for n := range t.parts {
		p := &t.parts[n]
		bytes += p.size()
		if err := p.sound(&t.key, n); err != nil {
			return fmt.Errorf("part %d: %w", n, err)
		}
		for _, r := range p.rows {
			if r.name != freeName {
				hosts++
				owned[r.owner]++
			}
		}
	}
	if hosts != t.hosts || bytes != t.bytes {
		return fmt.Errorf("%d hosts in %d bytes, the table says %d in %d", hosts, bytes, t.hosts, t.bytes)
	}
	for i, o := range t.nodes.all {
		if number, known := t.nodes.number[o.name]; o.hosts != owned[i] || o.hosts > 0 && (!known || int(number) != i) {
			return fmt.Errorf("%q owns %d hosts, the table says %d", o.name, owned[i], o.hosts)
		}
	}
	if len(t.nodes.number)+len(t.nodes.free) != len(t.nodes.all) {
		return fmt.Errorf("%d nodes and %d free numbers of %d", len(t.nodes.number), len(t.nodes.free), len(t.nodes.all))
	}
	if slices.ContainsFunc(t.localNumbers, func(i uint32) bool { return i != 0 }) {
		return fmt.Errorf("numbers of a part that was written are left")
	}
	return nil
}

func (p *part) sound(k *Key, number int) error {
	used, free, names := 0, 0, 0
	for i, r := range p.rows {
		if r.name == freeName {
			free++
			continue
		}
		name := p.name(uint32(i))
		names += len(appendBytes(nil, name))
		h := k.Sum(name)
		if _, found, ok := p.find(h, name); !ok || int(found) != i || partOf(h) != number {
			return fmt.Errorf("%q is row %d, and found %v at %d", name, i, ok, found)
		}
	}
	for _, x := range p.index {
		if x != 0 {
			used++
		}
	}
	listed := 0
	for i := p.freeHead; i != 0; i = p.rows[i-1].since {
		listed++
	}
	if used != len(p.rows)-free || free != p.freeCount || free != listed || names != len(p.names)-p.waste ||
		used*5 > len(p.index)*4 {
		return fmt.Errorf("%d of %d rows free, %d said, %d listed; %d of %d slots used; %d bytes of %d wasted, names have %d",
			free, len(p.rows), p.freeCount, listed, used, len(p.index), p.waste, len(p.names), names)
	}
	if p.waste*3 > len(p.names) || p.freeCount*3 > len(p.rows) {
		return fmt.Errorf("%d bytes of %d and %d rows of %d are wasted", p.waste, len(p.names), p.freeCount, len(p.rows))
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
