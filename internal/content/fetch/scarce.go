package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"kumo/internal/base/page"
)

// This machine may run out of what a connection takes: file descriptors, ports, buffers. No host is to blame for that,
// so dialling waits, idle connections are closed to make room, and a visit that found none fails with page.Local, which
// is counted for nobody.

// ownLimits are the errors by which a system says so.
var ownLimits = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	10024, 10055} // WSAEMFILE, WSAENOBUFS

// noPort says that all ports of this machine are taken for an address; WSAEADDRNOTAVAIL is Windows' word for it.
var noPort = []syscall.Errno{syscall.EADDRNOTAVAIL, 10049}

var errNoSocket = errors.New("all connections that this process may have are in use")

// isScarce reports whether err speaks of a want of this machine's.
func isScarce(err error) bool {
	if errors.Is(err, errNoSocket) || isOneOf(err, ownLimits) {
		return true
	}
	// The system's resolver keeps of such an error only the words.
	de, is := errors.AsType[*net.DNSError](err)
	return is && slices.ContainsFunc(ownLimits[:4], func(e syscall.Errno) bool { return strings.Contains(de.Err, e.Error()) })
}

func isOneOf(err error, all []syscall.Errno) bool {
	return slices.ContainsFunc(all, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// isScarceAt is isScarce for an attempt to connect to an address. For IPv6, that no own address is to be had means that
// this machine does not speak it.
func isScarceAt(a netip.Addr, err error) bool {
	return a.Unmap().Is4() && isOneOf(err, noPort) || isScarce(err)
}

// A scarcity is what a client has met of this machine's limits.
type scarcity struct {
	mu    sync.Mutex
	times int64
	last  string
}

func (s *scarcity) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	s.last = err.Error()
}

// Scarce says how often a connection or a look-up found no descriptor, port or buffer on this machine, and the last
// error.
func (c *Client) Scarce() (times int64, last string) {
	c.scarcity.mu.Lock()
	defer c.scarcity.mu.Unlock()
	return c.scarcity.times, c.scarcity.last
}

const (
	firstWant = 50 * time.Millisecond // how long is waited before the first new attempt
	mostWant  = time.Second           // and before any
)

// relieve makes room after an attempt that this machine's limits have ended, and waits. It returns false when the
// context ends.
func (c *Client) relieve(ctx context.Context, err error, wait time.Duration) bool {
	c.scarcity.note(err)
	c.closeIdle()
	return sleep(ctx, wait) == nil
}

// sleep waits, or returns the error of a context that ends before.
func sleep(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeIdle closes all connections that are not in use.
func (c *Client) closeIdle() {
	for c.conns.spare() {
	}
}

// spareSocket closes a connection that is not in use, and reports whether there was one.
func (c *Client) spareSocket() bool { return c.conns.spare() }

// OfLine reports whether the failure speaks of this machine or of its proxy, and of no host.
func (e *Error) OfLine() bool {
	return e.Failure == page.Local || e.Failure == page.Proxy && e.Op == proxyOp
}
