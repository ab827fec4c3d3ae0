package weburl

import (
	"errors"
	"strconv"
)

// The reasons for parse errors. Test for them with [errors.Is].
var (
	ErrRelative = errors.New("a relative URL without a base")
	ErrScheme   = errors.New("neither http nor https")
	ErrTooLong  = errors.New("longer than 8 KiB")
	ErrNoHost   = errors.New("no host")
	ErrHost     = errors.New("not a valid host name")
	ErrAddress  = errors.New("not a valid IP address")
	ErrPort     = errors.New("not a valid port")
)

// An Error reports an input that could not be parsed. Its Reason is one of the errors above.
type Error struct {
	Input  string // the input, truncated if very long
	Reason error
}

// maxQuoted is the maximum length of Error.Input.
const maxQuoted = 256

func newError(input string, reason error) *Error {
	if len(input) > maxQuoted {
		input = input[:maxQuoted]
	}
	return &Error{Input: input, Reason: reason}
}

func (e *Error) Error() string { return "URL " + strconv.Quote(e.Input) + ": " + e.Reason.Error() }

func (e *Error) Unwrap() error { return e.Reason }
