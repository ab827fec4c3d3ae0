package sink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"kumo/internal/base/advice"
)

type temporaryError struct{ error }

func (t *temporaryError) Unwrap() error { return t.error }

// Temporary marks an error as temporary: a retry may succeed.
func Temporary(err error) error { return &temporaryError{err} }

// IsTemporary reports whether a retry may succeed: the error is marked as temporary, or means that a server is
// unreachable or closed the connection.
func IsTemporary(err error) bool {
	if _, is := errors.AsType[*permanentError](err); is {
		return false
	}
	if _, is := errors.AsType[*temporaryError](err); is {
		return true
	}
	_, is := errors.AsType[net.Error](err)
	return is
}

// Redact returns a sink's URL without its password.
func Redact(at string) string {
	if u, err := url.Parse(at); err == nil {
		return RedactURL(u)
	}
	if scheme, rest, is := strings.Cut(at, "://"); is {
		return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return at
}

// HasPassword reports whether a sink's URL contains a password.
func HasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	for name := range u.Query() {
		has = has || strings.Contains(strings.ToLower(name), "password")
	}
	return has
}

// RedactURL returns a URL without passwords: that of the user and those in parameters.
func RedactURL(u *url.URL) string {
	query, secret := u.Query(), false
	for name := range query {
		if strings.Contains(strings.ToLower(name), "password") {
			query.Set(name, "xxxxx")
			secret = true
		}
	}
	if secret {
		c := *u
		c.RawQuery = query.Encode()
		u = &c
	}
	return u.Redacted()
}

// Parse parses a sink's URL. Its error is a usage error, and does not contain the password.
func Parse(at string) (*url.URL, error) {
	u, err := url.Parse(at)
	if err != nil {
		if e, is := errors.AsType[*url.Error](err); is {
			err = e.Err // without the URL
		}
		return nil, advice.Usage("the sink %s: %v", Redact(at), err)
	}
	return u, nil
}

// Pauses between tries grow by half, from the first to the longest.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
)

// A Retry puts batches, with retries.
type Retry struct {
	Sink
	Wait func(context.Context, time.Duration) error // waits, or returns the context's error
	Now  func() time.Time
	// MaxTime limits the time for a batch; 0 is no limit.
	MaxTime time.Duration
	// Failed is called before the pause after each failure; may be nil.
	Failed func(err error, pause time.Duration)
}

// Put puts a batch. It retries only after temporary errors.
func (r *Retry) Put(ctx context.Context, batch []Record) error {
	return r.Do(ctx, func() error { return r.Sink.Put(ctx, batch) })
}

// Do calls f until it succeeds.
func (r *Retry) Do(ctx context.Context, f func() error) error {
	begin := r.Now()
	for pause := firstPause; ; pause = min(pause+pause/2, longestPause) {
		err := f()
		if err == nil || ctx.Err() != nil || !IsTemporary(err) {
			return err
		}
		if tried := r.Now().Sub(begin); r.MaxTime > 0 && tried+pause > r.MaxTime {
			return fmt.Errorf("%w (tried for %v)", err, tried.Round(time.Second))
		}
		if r.Failed != nil {
			r.Failed(err, pause)
		}
		if waitErr := r.Wait(ctx, pause); waitErr != nil {
			return errors.Join(waitErr, err)
		}
	}
}

// Sleep waits in real time.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
