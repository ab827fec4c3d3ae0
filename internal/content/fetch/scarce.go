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

// exhaustionErrors are the errors by which a system says so.
var exhaustionErrors = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	10024, 10055} // WSAEMFILE, WSAENOBUFS

// portErrors says that all ports of this machine are taken for an address; WSAEADDRNOTAVAIL is Windows' word for it.
var portErrors = []syscall.Errno{syscall.EADDRNOTAVAIL, 10049}

var errNoSocket = errors.New("all connections that this process may have are in use")

// isExhausted reports whether err speaks of a want of this machine's.
func isExhausted(err error) bool {
	if errors.Is(err, errNoSocket) || isOneOf(err, exhaustionErrors) {
		return true
	}
	// The system's resolver keeps of such an error only the words.
	de, is := errors.AsType[*net.DNSError](err)
	return is &&
		slices.ContainsFunc(exhaustionErrors[:4], func(e syscall.Errno) bool { return strings.Contains(de.Err, e.Error()) })
}

func isOneOf(err error, all []syscall.Errno) bool {
	return slices.ContainsFunc(all, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// isExhaustedAt is isExhausted for an attempt to connect to an address. For IPv6, that no own address is to be had means that
// this machine does not speak it.
func isExhaustedAt(a netip.Addr, err error) bool {
	return a.Unmap().Is4() && isOneOf(err, portErrors) || isExhausted(err)
}

// A scarcity is what a client has met of this machine's limits.
type exhaustion struct {
	mu    sync.Mutex
	times int64
	last  string
}

func (s *exhaustion) record(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	s.last = err.Error()
}

// Exhaustion says how often a connection or a look-up found no descriptor, port or buffer on this machine, and the last
// error.
func (c *Client) Exhaustion() (times int64, last string) {
	c.exhaustion.mu.Lock()
	defer c.exhaustion.mu.Unlock()
	return c.exhaustion.times, c.exhaustion.last
}

const (
	minRetryWait = 50 * time.Millisecond // how long is waited before the first new attempt
	maxRetryWait = time.Second           // and before any
)

// waitForResources makes room after an attempt that this machine's limits have ended, and waits. It returns false when the
// context ends.
func (c *Client) waitForResources(ctx context.Context, err error, wait time.Duration) bool {
	c.exhaustion.record(err)
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
	for c.conns.closeOldest() {
	}
}

// closeOneIdle closes a connection that is not in use, and reports whether there was one.
func (c *Client) closeOneIdle() bool { return c.conns.closeOldest() }

// IsLocal reports whether the failure speaks of this machine or of its proxy, and of no host.
func (e *Error) IsLocal() bool {
	return e.Failure == page.Local || e.Failure == page.Proxy && e.Op == proxyOp
}
