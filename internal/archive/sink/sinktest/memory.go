package sinktest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"kumo/internal/archive/sink"
)

// A Memory is a sink in memory, for tests of senders.
type Memory struct {
	mu      sync.Mutex
	Down    error // error of Put; nil: none
	Fails   int   // number of calls of Put that store half a batch and then fail
	Puts    int
	Largest int
	records map[string]sink.Record
}

var (
	_ sink.Sink   = (*Memory)(nil)
	_ sink.Lister = (*Memory)(nil)
)

// ErrFailed is the error of failed calls.
var ErrFailed = sink.Temporary(errors.New("memory: failed"))

// SetDown sets the error of Put.
func (m *Memory) SetDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Down = err
}

// Put implements sink.Sink.
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

// Records returns the stored records.
func (m *Memory) Records() map[string]sink.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.records)
}

// Each implements sink.Lister.
func (m *Memory) Each(_ context.Context, f func(string, time.Time) error) error {
	for url, r := range m.Records() {
		if err := f(url, r.Time); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements sink.Sink.
func (m *Memory) Flush(context.Context) error { return nil }

// Close implements sink.Sink.
func (m *Memory) Close() error { return nil }
