package sinks

import (
	"context"
	"io"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
)

// connectTimeout is how long a crawl waits for a sink before it starts.
const connectTimeout = 20 * time.Second

// Follow returns a follower that sends a crawl's records to a sink while the crawl runs. If the sink is temporarily not
// available, the follower retries later; if it rejects records permanently, Follow returns an error.
func Follow(ctx context.Context, dir, at string, patience time.Duration, failed func(error),
	works func()) (*follow.Follower, error) {
	if at == Stdout {
		return nil, advice.Usage("--sink -: a crawl's folder cannot be written to standard output; kumo crawl -o - writes " +
			"pages there")
	}
	first, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	s, err := Open(first, at, io.Discard)
	switch {
	case err == nil:
		err = s.Close()
	case sink.IsTemporary(err):
		failed(err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return follow.New(follow.Config{Dir: dir, Disk: vfs.OS, Name: sink.Redact(at), Now: time.Now, Wait: sink.Sleep,
		Patience: patience, OnFailure: failed, OnRecovery: works,
		Open: func(ctx context.Context) (sink.Sink, error) { return Open(ctx, at, io.Discard) }}), nil
}
