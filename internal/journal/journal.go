// Package journal is the family of logs from which a node's state can be rebuilt. What a batch says is the engine's business;
// a journal keeps batches whole, in order and, once Append has returned, for good.
package journal

// A Journal keeps batches. Its methods are called by one goroutine at a time.
type Journal interface {
	// Append adds one batch and returns when it is durable. After an error nothing more may be appended: the batch may be
	// there in part, and opening the journal again cuts that part off.
	Append(batch []byte) error
	// Replay calls f with every batch, oldest first; f must not keep the slice. It is called before the first Append.
	Replay(f func(batch []byte) error) error
	Close() error
}

// Discard is the journal of a crawl that does not outlive its process.
var Discard Journal = discard{}

type discard struct{}

func (discard) Append([]byte) error             { return nil }
func (discard) Replay(func([]byte) error) error { return nil }
func (discard) Close() error                    { return nil }
