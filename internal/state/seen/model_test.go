package seen

import (
	"context"
	"maps"
)

// freeze tries to freeze the active part.
func (m *model) freeze() {
	pos := uint64(len(m.journal))
	if !m.db.Freeze(pos) {
		return
	}
	m.frozen, m.active = m.active, map[string]waiting{}
	m.lates[pos] = m.joined()
}

// joined returns the undecided URLs after the frozen part is merged.
func (m *model) joined() map[string]waiting {
	late := maps.Clone(m.late)
	for url, w := range m.frozen {
		old, ok := late[url]
		switch {
		case !ok:
			late[url] = w
		case m.judge(old.best, w.best) != Nothing:
			late[url] = waiting{old.before, w.best, w.payload}
		}
	}
	return late
}

// merge merges the frozen part, and reports whether the process is still alive.
func (m *model) merge(merge func(context.Context, func([]Decided) error) error) bool {
	late, merges := m.joined(), m.db.Stats().Merges
	want := map[string]waiting{}
	for url, w := range late {
		if a, ok := m.active[url]; ok && m.judge(w.before, w.best) != Nothing && m.judge(w.best, a.best) != Nothing {
			w.best, w.payload = a.best, a.payload
		}
		want[url] = w
	}
	err := merge(context.Background(), func(all []Decided) error {
		for _, d := range all {
			m.hear(d, want)
		}
		return nil
	})
	if m.db.Stats().Merges > merges {
		m.frozen, m.late = nil, late
	}
	if err != nil {
		return m.fine(err)
	}
	if m.db.Waiting() == 0 {
		m.decided(want)
	}
	return true
}

func (m *model) hear(d Decided, want map[string]waiting) {
	w, ok := want[d.URL.URL]
	if _, twice := m.told[d.URL.URL]; !ok || twice {
		m.t.Fatalf("%v is told; it waited: %v, told before: %v", d, ok, twice)
	}
	if (entry{d.State, d.Depth}) != w.best || string(d.Payload) != w.payload {
		m.t.Fatalf("%v %v %q is told, the best offer was %v", d.State, d.Depth, d.Payload, w)
	}
	m.told[d.URL.URL] = d.News
	d.Payload = nil
	m.journal = append(m.journal, told(d.URL))
}

// decided compares the delivered URLs with the expected ones.
func (m *model) decided(want map[string]waiting) {
	for url, w := range want {
		news := m.judge(w.before, w.best)
		if m.told[url] != news {
			m.t.Fatalf("%s: merge says %v, want %v: %v", url, m.told[url], news, w)
		}
		if a, ok := m.active[url]; ok && news != Nothing {
			a.before = better(a.before, w.best)
			m.active[url] = a
		}
	}
	m.late, m.told = map[string]waiting{}, map[string]News{}
}
