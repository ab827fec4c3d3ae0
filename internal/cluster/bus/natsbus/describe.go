package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"kumo/internal/cluster/bus"
)

// This file turns NATS's errors into messages for users: no error of this package shows NATS's own text or codes.

// A describedError has a message of its own in place of its cause's, which errors.Is and errors.As still find.
type describedError struct {
	text  string
	cause error
}

func (e *describedError) Error() string { return e.text }
func (e *describedError) Unwrap() error { return e.cause }

// withDescription replaces the message of an error of NATS or the system.
func withDescription(err error) error {
	if err == nil {
		return nil
	}
	return &describedError{describe(err), err}
}

// unavailable returns bus.ErrUnavailable with a described cause.
func unavailable(err error) error {
	return &describedError{bus.ErrUnavailable.Error() + ": " + describe(err), errors.Join(bus.ErrUnavailable, err)}
}

// Descriptions of errors between a client and the servers.
const (
	textLate     = "no answer in time"
	textNoLeader = "the servers have no leader"
	textLost     = "the connection to the server is lost"
	textRefused  = "connection refused"
	textClosed   = "the connection was closed"
	textLogin    = "authorization failed"
)

// describe returns the message for an error.
func describe(err error) string {
	var own *describedError
	var address *AddressError
	var absent *AbsentError
	var api *jetstream.APIError
	var other *net.OpError
	switch {
	case errors.As(err, &own):
		return own.text
	case errors.As(err, &absent):
		return absent.Error()
	case errors.As(err, &address):
		return address.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		return textLate
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.As(err, &api) && api.Code == unavailableCode:
		return textNoLeader
	case errors.As(err, &api) && (api.ErrorCode == tooFewCode || api.ErrorCode == noPeersCode):
		return "fewer servers than copies requested: use --servers 1, or start more servers"
	case errors.As(err, &api):
		return "server error: " + api.Description
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return textLogin
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrStaleConnection),
		errors.Is(err, nats.ErrConnectionReconnecting):
		return textLost
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, syscall.ECONNREFUSED):
		return textRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, nats.ErrConnectionClosed):
		return textClosed
	case errors.As(err, &other) && other.Timeout():
		return textLate
	case errors.As(err, &other):
		return other.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}

// Errors of an existing NATS deployment: several copies on a single server, or too few servers.
const (
	tooFewCode  jetstream.ErrorCode = 10074
	noPeersCode jetstream.ErrorCode = 10005
)

// unavailableCode is the code, as in HTTP, of answers that no server can serve the request.
const unavailableCode = 503

// An AbsentError reports how many of a cluster's servers do not answer. It wraps ErrNoAnswer if none does,
// ErrNoMajority if too few do, and ErrNoLeader if there is a majority that has not elected a leader yet.
type AbsentError struct {
	Servers     int             // number of known servers
	Unreachable []*AddressError // the servers that do not answer
	err         error           // error of the failed operation
}

// The kinds of AbsentError, besides ErrNoAnswer.
var (
	ErrNoMajority = errors.New("a majority of the cluster's servers does not answer")
	ErrNoLeader   = errors.New("the cluster's servers have no leader")
)

func (e *AbsentError) kind() error {
	switch {
	case len(e.Unreachable) == e.Servers:
		return ErrNoAnswer
	case 2*(e.Servers-len(e.Unreachable)) <= e.Servers:
		return ErrNoMajority
	}
	return ErrNoLeader
}

func (e *AbsentError) Error() string {
	if len(e.Unreachable) == 1 && e.Servers == 1 {
		return e.Unreachable[0].Error()
	}
	var away []string
	for _, a := range e.Unreachable {
		away = append(away, fmt.Sprintf("%s (%s)", a.Address, describe(a.cause())))
	}
	list := strings.Join(away, ", ")
	switch kind := e.kind(); {
	case errors.Is(kind, ErrNoAnswer):
		return fmt.Sprintf("none of the cluster's %d servers answers: %s", e.Servers, list)
	case errors.Is(kind, ErrNoMajority):
		return fmt.Sprintf("%d of the cluster's %d servers do not answer: %s", len(e.Unreachable), e.Servers, list)
	}
	if len(e.Unreachable) == 0 {
		return "the cluster's servers answer, but cannot be written to yet: " + describe(e.err)
	}
	return fmt.Sprintf("a majority of the cluster's %d servers answers, but cannot be written to yet: %s; silent: %s",
		e.Servers, describe(e.err), list)
}

func (e *AbsentError) Unwrap() []error { return []error{e.kind(), e.err} }

// cause returns why an address does not answer, without ErrNoAnswer's text.
func (e *AddressError) cause() error {
	if a, ok := errors.AsType[*noAnswer](e.Err); ok {
		return a.cause
	}
	return e.Err
}

// A noAnswer is ErrNoAnswer with its cause.
type noAnswer struct{ cause error }

func (e *noAnswer) Error() string   { return ErrNoAnswer.Error() + ": " + describe(e.cause) }
func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.cause} }
