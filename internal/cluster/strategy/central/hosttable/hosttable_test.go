package hosttable

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"kumo/internal/cluster/strategy"
)

// TestModel compares a table with a map under random operations.
func TestModel(t *testing.T) {
	t.Parallel()
	names := crowd(3000, 2)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := model{t: t, tab: New(testKey), want: map[string]Row{}, dice: rand.New(rand.NewPCG(seed, 1))}
			for phase := range 12 {
				m.run(names[:len(names)>>m.dice.IntN(5)], 4000, []float64{0.1, 0.5, 0.9}[m.dice.IntN(3)], 1+phase*phase)
			}
			for _, host := range names {
				m.remove(host)
			}
			if tab := m.tab; tab.Len() != 0 || tab.Bytes() != 0 || tab.nodes.known() != 0 {
				t.Errorf("an empty table has %d hosts, %d bytes and %d nodes", tab.Len(), tab.Bytes(), tab.nodes.known())
			}
		})
	}
}

type model struct {
	t     *testing.T
	tab   *Table
	want  map[string]Row
	dice  *rand.Rand
	saved [2][]byte // earlier encodings of parts
	then  [2]map[string]Row
}

// run runs random steps; removing is the share of deletions.
func (m *model) run(names []string, steps int, removing float64, owners int) {
	for range steps {
		host := names[m.dice.IntN(len(names))]
		switch x := m.dice.Float64(); {
		case x < 0.0005:
			m.save(m.dice.IntN(2))
		case x < 0.001:
			m.load(m.dice.IntN(2))
		case m.dice.Float64() < removing:
			m.remove(host)
		default:
			r := randomRow(m.dice, owners)
			m.tab.Set(host, r)
			m.want[host] = r
		}
		m.look(names[m.dice.IntN(len(names))])
	}
	must(m.t, m.tab.sound())
	if got := content(m.t, m.tab); !maps.Equal(got, m.want) || m.tab.Len() != len(m.want) {
		m.t.Fatalf("the table has %d hosts, says %d, want %d", len(got), m.tab.Len(), len(m.want))
	}
}

func (m *model) remove(host string) {
	if _, there := m.want[host]; m.tab.Delete(host) != there {
		m.t.Fatalf("Delete of %q says %v", host, !there)
	}
	delete(m.want, host)
}

func (m *model) look(host string) {
	want, there := m.want[host]
	if got, ok := m.tab.Get(host); ok != there || got != want {
		m.t.Fatalf("%q is %v, %v; want %v, %v", host, got, ok, want, there)
	}
}

func (m *model) save(part int) {
	m.saved[part], m.then[part] = m.tab.AppendPart(nil, part), map[string]Row{}
	for host, r := range m.want {
		if m.tab.Part(host) == part {
			m.then[part][host] = r
		}
	}
}

func (m *model) load(part int) {
	if m.saved[part] == nil {
		return
	}
	must(m.t, m.tab.LoadPart(m.saved[part]))
	maps.DeleteFunc(m.want, func(host string, _ Row) bool { return m.tab.Part(host) == part })
	maps.Copy(m.want, m.then[part])
}

// TestCount: hosts are counted by owner, and an owner without hosts is forgotten.
func TestCount(t *testing.T) {
	tab := New(testKey)
	for i := range 100 {
		tab.Set(fmt.Sprint(i), Row{Owner: strategy.Node(fmt.Sprint("n~", i%3))})
	}
	tab.Set("0", Row{Owner: "n~0", State: 1}) // the same owner again
	tab.Set("1", Row{})
	for node, want := range map[strategy.Node]int{"n~0": 34, "n~1": 32, "n~2": 33, "": 1, "n~3": 0} {
		if got := tab.Count(node); got != want {
			t.Errorf("%q owns %d hosts, want %d", node, got, want)
		}
	}
	for life := range 5 * MaxNodes { // more node ids than there are numbers
		tab.Set("1", Row{Owner: strategy.Node(fmt.Sprint("life~", life))})
	}
	if n := len(tab.nodes.all); n > 6 {
		t.Errorf("%d numbers are in use for 4 nodes", n)
	}
	must(t, tab.sound())
}

// TestAllocations: lookups and changes do not allocate.
func TestAllocations(t *testing.T) {
	tab, long := New(testKey), "a-name-of-more-than-thirty-two-bytes.example.com"
	tab.Set(long, Row{Owner: "a~1"})
	tab.Set("b", Row{Owner: "b~1"})
	if n := testing.AllocsPerRun(100, func() {
		r, _ := tab.Get(long)
		r.Round++
		tab.Set(long, r)
		tab.Get("none")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPart fixes the part of a host, which is part of a crawl's state.
func TestPart(t *testing.T) {
	var key Key
	for i := range key {
		key[i] = byte(i)
	}
	if got := New(key).Part("example.com"); got != 425 {
		t.Errorf("example.com is in part %d", got)
	}
}
