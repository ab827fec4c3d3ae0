package wire

import "errors"

// An advised error says what to do about it.
type advised struct {
	error
	do string
}

func (e *advised) Unwrap() error { return e.error }

// AdviseTo adds to an error what to do about it.
func AdviseTo(err error, do string) error { return &advised{err, do} }

// Advice is what can be done about an error, "" if nobody knows.
func Advice(err error) string {
	if a, ok := errors.AsType[*advised](err); ok {
		return a.do
	}
	return ""
}
