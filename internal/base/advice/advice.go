// Package advice marks errors as usage errors and attaches advice to errors.
//
// A [UsageError] reports an invalid request by the user. [With] adds a remedy to an error, and [Of] returns it.
package advice

import (
	"errors"
	"fmt"
)

// A UsageError reports an invalid request by the user. Nothing was done.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// Usage returns a UsageError formatted by fmt.Errorf.
func Usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// IsUsage reports whether err is or wraps a UsageError.
func IsUsage(err error) bool {
	_, is := errors.AsType[*UsageError](err)
	return is
}

type advised struct {
	error
	remedy string
}

func (e *advised) Unwrap() error { return e.error }

// With attaches advice to an error: what the user can do about it.
func With(err error, do string) error { return &advised{err, do} }

// Of returns the advice attached to an error, or "".
func Of(err error) string {
	if a, ok := errors.AsType[*advised](err); ok {
		return a.remedy
	}
	return ""
}
