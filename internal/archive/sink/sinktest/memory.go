package sinktest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"kumo/internal/archive/sink"
)

// A Memory is a sink for tests of those who send.
type Memory struct {
	mu      sync.Mutex
	Down    error // what Put says; nil: it takes all
	Fails   int   // so many times Put takes half of a batch, then says that it has failed
	Puts    int
	Largest int
	records map[string]sink.Record
}

var (
	_ sink.Sink   = (*Memory)(nil)
	_ sink.Lister = (*Memory)(nil)
)

// ErrFailed is what Fails brings.
var ErrFailed = sink.Temporary(errors.New("memory: failed"))

// SetDown says whether it is down.
func (m *Memory) SetDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Down = err
}

// Put is Sink's.
func (m *Memory) Put(_ context.Context, batch []sink.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Down != nil {
		return m.Down
	}
	if m.records == nil {
		m.records = map[string]sink.Record{}
	}
	m.Puts++
	m.Largest = max(m.Largest, len(batch))
	fails := m.Fails > 0
	if fails {
		m.Fails--
		batch = batch[:len(batch)/2]
	}
	for _, r := range batch {
		if was, is := m.records[r.URL]; !is || !r.Time.Before(was.Time) {
			m.records[r.URL] = r
		}
	}
	if fails {
		return ErrFailed
	}
	return nil
}

// Records are those that it has.
func (m *Memory) Records() map[string]sink.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.records)
}

// Each is Lister's.
func (m *Memory) Each(_ context.Context, f func(string, time.Time) error) error {
	for url, r := range m.Records() {
		if err := f(url, r.Time); err != nil {
			return err
		}
	}
	return nil
}

// Flush is Sink's.
func (m *Memory) Flush(context.Context) error { return nil }

// Close is Sink's.
func (m *Memory) Close() error { return nil }
