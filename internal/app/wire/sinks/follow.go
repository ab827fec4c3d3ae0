package sinks

import (
	"context"
	"io"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
)

// connectTimeout is how long a crawl waits for a sink before it starts.
const connectTimeout = 20 * time.Second

// Follow returns a follower that sends a crawl's records to a sink while the crawl runs. If the sink is temporarily not
// available, the follower retries later; if it rejects records permanently, Follow returns an error.
func Follow(ctx context.Context, j *job.Job, at string, w Watch) (*follow.Follower, error) {
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
		w.Failed(sink.Redact(at), err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return w.follower(j, at), nil
}

// rulesOf returns the field rules of a job by URL; nil without rules.
func rulesOf(j *job.Job) func(url string) []page.FieldRule {
	if j.Fields == nil {
		return nil
	}
	return j.Fields.Rules
}
