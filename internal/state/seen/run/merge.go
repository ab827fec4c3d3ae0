package run

import "bytes"

// A MergeFunc merges two values of one key, from a newer and an older source. It may modify newer and return it.
type MergeFunc func(newer, older []byte) []byte

var _ Source = (*Merged)(nil)

// Merged merges several sources into one: each key once, with its values merged.
type Merged struct {
	heap        []ranked // by key, then from newer to older
	mergeValues MergeFunc
	key         []byte
	value       []byte
	err         error
}

type ranked struct {
	Source
	age int
}

// Merge merges sources, given from the newest to the oldest.
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

// Next advances to the next key.
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

// Key returns the key, valid until the next call of Next.
func (m *Merged) Key() []byte { return m.key }

// Value returns the merged value, valid until the next call of Next.
func (m *Merged) Value() []byte { return m.value }

// Err returns the error that ended the iteration, nil at the end.
func (m *Merged) Err() error { return m.err }
