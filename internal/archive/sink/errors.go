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

// Temporary marks an error that may be over when the same is done again.
func Temporary(err error) error { return &temporaryError{err} }

// IsTemporary reports whether an error may be over when the same is done again: one that is marked so, or that says
// that a server was not reached or went away.
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

// Redact is a sink's URL without its password.
func Redact(at string) string {
	if u, err := url.Parse(at); err == nil {
		return RedactURL(u)
	}
	if scheme, rest, is := strings.Cut(at, "://"); is {
		return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return at
}

// RedactURL is a URL without its passwords: the user's, and those among its parameters.
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

// Parse reads a sink's URL. What is wrong with it is an error of usage, without the password that it may have.
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

// Pauses between tries grow by a half, from the first to the longest.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
)

// A Retry puts a batch until it is there.
type Retry struct {
	Sink
	Wait func(context.Context, time.Duration) error // returns after a time, or with the context's error
	Now  func() time.Time
	// MaxTime is how long a batch is tried; 0 is without end.
	MaxTime time.Duration
	// Failed is told of each failure that a pause follows; nil: nobody is.
	Failed func(err error, pause time.Duration)
}

// Put is Sink's. Only errors that may be over are tried again.
func (r *Retry) Put(ctx context.Context, batch []Record) error {
	return r.Do(ctx, func() error { return r.Sink.Put(ctx, batch) })
}

// Do does something until it goes well.
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

// Sleep waits by the system's clock.
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
