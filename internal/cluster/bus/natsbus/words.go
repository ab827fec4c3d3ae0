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

// This is the one place where what NATS says becomes words for people: no error of this package shows NATS's own text
// or codes.

// A worded error shows words in place of the error that it is about, which errors.Is and errors.As still find.
type describedError struct {
	text  string
	cause error
}

func (e *describedError) Error() string { return e.text }
func (e *describedError) Unwrap() error { return e.cause }

// withDescription puts words in place of an error's text, where the error is NATS's or the system's.
func withDescription(err error) error {
	if err == nil {
		return nil
	}
	return &describedError{describe(err), err}
}

// unavailable is bus.ErrUnavailable, with why in words.
func unavailable(err error) error {
	return &describedError{bus.ErrUnavailable.Error() + ": " + describe(err), errors.Join(bus.ErrUnavailable, err)}
}

// The kinds of trouble that there are between a client and the servers, in words.
const (
	textLate     = "no answer in time"
	textNoLeader = "the servers have no leader at present"
	textLost     = "the connection to the server is lost"
	textRefused  = "connection refused"
	textClosed   = "the connection was closed"
	textLogin    = "its authorization refuses this login"
)

// describe says what an error is about.
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
		return "there are fewer servers than copies wanted: give --servers 1, or let more of them run"
	case errors.As(err, &api):
		return "the server says: " + api.Description
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

// Of a NATS that somebody else runs: one server alone is asked for copies on several, or several have too few.
const (
	tooFewCode  jetstream.ErrorCode = 10074
	noPeersCode jetstream.ErrorCode = 10005
)

// unavailableCode is that of answers which say that nobody can do it at present; it is HTTP's.
const unavailableCode = 503

// An AbsentError says how many of a cluster's servers do not answer. It is ErrNoAnswer where none does, ErrNoMajority
// where too few do to decide anything, and ErrNoLeader where there are enough, and they have yet to agree who leads
// them.
type AbsentError struct {
	Servers     int             // as many as are known of
	Unreachable []*AddressError // those that do not answer
	err         error           // what was tried in vain
}

// The kinds of AbsentError, beside ErrNoAnswer.
var (
	ErrNoMajority = errors.New("a majority of the cluster's servers does not answer")
	ErrNoLeader   = errors.New("the cluster's servers have no leader at present")
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
		return fmt.Sprintf("%d of the cluster's %d servers answer no more: %s", len(e.Unreachable), e.Servers, list)
	}
	if len(e.Unreachable) == 0 {
		return "the cluster's servers answer, but cannot be written to yet: " + describe(e.err)
	}
	return fmt.Sprintf("a majority of the cluster's %d servers answers, but cannot be written to yet: %s; not there: %s",
		e.Servers, describe(e.err), list)
}

func (e *AbsentError) Unwrap() []error { return []error{e.kind(), e.err} }

// cause is why an address does not answer, without the words for that.
func (e *AddressError) cause() error {
	if a, ok := errors.AsType[*noAnswer](e.Err); ok {
		return a.cause
	}
	return e.Err
}

// A noAnswer is ErrNoAnswer with its reason.
type noAnswer struct{ cause error }

func (e *noAnswer) Error() string   { return ErrNoAnswer.Error() + ": " + describe(e.cause) }
func (e *noAnswer) Unwrap() []error { return []error{ErrNoAnswer, e.cause} }
