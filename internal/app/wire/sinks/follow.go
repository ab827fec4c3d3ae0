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

// connectTimeout is how long a sink is waited for before a crawl begins.
const connectTimeout = 20 * time.Second

// Follow makes what sends a crawl's records to a sink while the crawl runs. A sink that is not there now is tried
// later; one that will not take records, as it is, is an error.
func Follow(ctx context.Context, dir, at string, patience time.Duration, failed func(error),
	works func()) (*follow.Follower, error) {
	if at == Stdout {
		return nil, advice.Usage("--sink - : what goes to standard output is no crawl's folder: kumo crawl -o - writes " +
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
