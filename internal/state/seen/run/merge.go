package run

import "bytes"

// A Fold makes one value of two that a key has in a newer and in an older source. It may change newer and return it.
type MergeFunc func(newer, older []byte) []byte

var _ Source = (*Merged)(nil)

// Merged is several sources as one: each key once, its values folded.
type Merged struct {
	heap        []ranked // the least key first, the newer first among equal ones
	mergeValues MergeFunc
	key         []byte
	value       []byte
	err         error
}

type ranked struct {
	Source
	age int
}

// Merge merges sources, the newest first.
func Merge(fold MergeFunc, sources ...Source) *Merged {
	m := &Merged{mergeValues: fold}
	for age, s := range sources {
		if s.Next() {
			m.heap = append(m.heap, ranked{s, age})
		} else if m.err == nil {
			m.err = s.Err()
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// Next goes to the next key.
func (m *Merged) Next() bool {
	if len(m.heap) == 0 || m.err != nil {
		return false
	}
	m.key = append(m.key[:0], m.heap[0].Key()...)
	m.value = append(m.value[:0], m.heap[0].Value()...)
	m.advance()
	for len(m.heap) > 0 && bytes.Equal(m.heap[0].Key(), m.key) {
		m.value = m.mergeValues(m.value, m.heap[0].Value())
		m.advance()
	}
	return m.err == nil
}

func (m *Merged) advance() {
	if !m.heap[0].Next() {
		if err := m.heap[0].Err(); err != nil && m.err == nil {
			m.err = err
		}
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
}

func (m *Merged) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if m.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

func (m *Merged) less(i, j int) bool {
	a, b := &m.heap[i], &m.heap[j]
	c := bytes.Compare(a.Key(), b.Key())
	return c < 0 || c == 0 && a.age < b.age
}

// Key is the key, valid until the next call of Next.
func (m *Merged) Key() []byte { return m.key }

// Value is the folded value, valid until the next call of Next.
func (m *Merged) Value() []byte { return m.value }

// Err is why Next returned false, nil at the end.
func (m *Merged) Err() error { return m.err }
