package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kumo/internal/look"
)

const (
	lookPatience = 3 * time.Second        // with a crawl that is starting or ending
	lookAgain    = 100 * time.Millisecond // until it is asked again
)

// answerLooks lets the crawl be asked while it runs, until the function it returns is called. Where that cannot be, the user is told,
// and the crawl goes on.
func (c *Crawl) answerLooks() (away func()) {
	if c.folder == nil {
		return func() {}
	}
	desk, err := look.Open(c.folder.path(deskName), source{c})
	if err != nil {
		c.Job.Warn(fmt.Errorf("nobody can look into the crawl while it runs: %w", err))
		return func() {}
	}
	served := make(chan error, 1)
	go func() { served <- desk.Serve() }()
	return func() {
		if err := errors.Join(desk.Close(), <-served); err != nil {
			c.Job.Warn(err)
		}
	}
}

// A Look is a look into the crawl in a folder.
type Look struct {
	look.Source
	dir     string
	running bool
	close   func() error
}

// OpenLook opens a look into the crawl in dir: it asks the crawl if it runs, and opens the job's folder if not.
func OpenLook(ctx context.Context, dir string, job func() (*Job, error)) (*Look, error) {
	patience, done := context.WithTimeout(ctx, lookPatience)
	defer done()
	for {
		l, err := openLook(ctx, dir, job)
		if !errors.Is(err, ErrLocked) || errors.Is(err, look.ErrElsewhere) {
			return l, err
		}
		select {
		case <-patience.Done():
			return nil, fmt.Errorf("a crawl is just starting or ending there, or another look goes on: try again in a moment (%w)", err)
		case <-time.After(lookAgain):
		}
	}
}

// openLook asks where the folder says that somebody answers. Nobody may: a crawl that was killed leaves that word, and then the
// folder can be opened.
func openLook(ctx context.Context, dir string, job func() (*Job, error)) (*Look, error) {
	client, silent := look.Dial(ctx, (&folder{dir: dir}).path(deskName))
	if silent == nil {
		return &Look{client, dir, true, client.Close}, nil
	}
	j, err := job()
	if err != nil {
		return nil, err
	}
	c, err := Open(j)
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%w: %w", err, silent)
	}
	if err != nil {
		return nil, err
	}
	return &Look{source{c}, dir, false, c.Close}, nil
}

// Close ends the look.
func (l *Look) Close() error { return l.close() }

const (
	lookTries = 5                      // at a URL that is just going from one place to another
	lookPause = 100 * time.Millisecond // lines are in the files after a commit
)

// Explain says what became of a URL, with what the crawl's files say of it.
func (l *Look) Explain(ctx context.Context, url string) (*look.Explanation, error) {
	for try := 1; ; try++ {
		x, err := l.Source.Explain(ctx, url)
		if err != nil {
			return nil, err
		}
		x.Running = l.running
		if err := l.addFiles(x); err != nil {
			return nil, err
		}
		if x.Settle(); x.Fate != look.Unaccounted || try == lookTries {
			return x, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookPause):
		}
	}
}
