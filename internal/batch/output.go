package batch

import (
	"sync"
	"time"

	"kumo/internal/base/page"
)

// An output serializes the records that the threads of a crawl task emit.
type output struct {
	task *Task
	now  func() time.Time
	mu   sync.Mutex // guards emit, which is called by one goroutine at a time, and buf
	emit Emit
	buf  []byte
}

// put emits a record.
func (o *output) put(key []byte, write func([]byte) []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = write(o.buf[:0])
	err := o.emit(key, o.buf)
	if cap(o.buf) > 4<<20 {
		o.buf = nil
	}
	return err
}

// document returns a Document for an InURL, without an answer.
func (o *output) document(in *InURL) Document {
	return Document{Collection: in.Collection, URL: in.URL, From: in.From, Depth: in.Depth, Redirects: in.Redirects,
		Seed: in.Seed, Time: o.now().UTC(), MetaFollow: true, MetaIndex: true}
}

// refuse emits a Document for a URL that a rule excludes.
func (o *output) refuse(in *InURL, rule, why string) error {
	d := o.document(in)
	d.Rule, d.Detail = rule, why
	o.task.Count(in.Collection, refusedPrefix+rule, 1)
	return o.put(d.Key(), d.Append)
}

// fail emits a Document for a URL without an answer.
func (o *output) fail(in *InURL, failure page.Failure, detail string) error {
	d := o.document(in)
	d.Failure, d.Detail = failure, detail
	return o.put(d.Key(), d.Append)
}

// postpone defers a URL to the next round.
func (o *output) postpone(in *InURL) error {
	o.task.Count(in.Collection, "left to the next round", 1)
	return o.put(in.Key(), in.Append)
}
