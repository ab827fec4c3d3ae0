package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"kumo/internal/base/page"
)

// An Error is the reason why an exchange has no response.
type Error struct {
	Failure page.Failure
	Op      string // "resolve", "dial", "handshake", "proxy", "tunnel", "get" or "decode"
	URL     string
	Err     error
}

func (e *Error) Error() string {
	if e.URL == "" { // the attempt was not for a single URL
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.URL, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// withURL returns the error for a URL or host.
func (e *Error) withURL(url string) *Error { return &Error{e.Failure, e.Op, url, e.Err} }

// refusedOnWindows is WSAECONNREFUSED, which package syscall does not name.
const refusedOnWindows = syscall.Errno(10061)

// dialError classifies an error that occurred before a connection was established.
func dialError(op string, err error) *Error {
	if earlier, ok := errors.AsType[*Error](err); ok {
		return earlier
	}
	failure := page.Connect
	switch {
	case isExhausted(err):
		failure = page.Local
	case errors.Is(err, ErrPrivate):
		failure = page.Private
	case op == "proxy":
		failure = page.Proxy
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, refusedOnWindows):
		failure = page.Refused
	case op == "resolve":
		failure = page.DNS
	case op == "handshake" && !isTimeout(err):
		failure = page.TLS
	}
	return &Error{Failure: failure, Op: op, Err: err}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}

// isBroken reports whether err is an error of the connection, not of the data received.
func isBroken(err error) bool {
	_, ofNetwork := errors.AsType[*net.OpError](err)
	return ofNetwork || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe)
}
