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

// This machine may run out of file descriptors, ports or buffers. That is no host's fault: dialing waits, idle
// connections are closed, and a visit that still fails gets page.Local, which is not counted against any host.

// exhaustionErrors are the system errors for exhausted resources.
var exhaustionErrors = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	10024, 10055} // Windows: WSAEMFILE, WSAENOBUFS

// portErrors mean that this machine has no free port for an address; 10049 is WSAEADDRNOTAVAIL on Windows.
var portErrors = []syscall.Errno{syscall.EADDRNOTAVAIL, 10049}

var errNoSocket = errors.New("this process has reached its limit of open connections")

// isExhausted reports whether err was caused by exhausted resources of this machine.
func isExhausted(err error) bool {
	if errors.Is(err, errNoSocket) || isOneOf(err, exhaustionErrors) {
		return true
	}
	// The system's resolver keeps only the text of such an error.
	de, is := errors.AsType[*net.DNSError](err)
	return is &&
		slices.ContainsFunc(exhaustionErrors[:4], func(e syscall.Errno) bool { return strings.Contains(de.Err, e.Error()) })
}

func isOneOf(err error, all []syscall.Errno) bool {
	return slices.ContainsFunc(all, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// isExhaustedAt is isExhausted for a connection to an address. For IPv6 addresses portErrors do not count: they mean
// that this machine has no IPv6.
func isExhaustedAt(a netip.Addr, err error) bool {
	return a.Unmap().Is4() && isOneOf(err, portErrors) || isExhausted(err)
}

// An exhaustion counts errors caused by exhausted resources.
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

// Exhaustion returns how often a connection or lookup found no descriptor, port or buffer on this machine, and the last
// error.
func (c *Client) Exhaustion() (times int64, last string) {
	c.exhaustion.mu.Lock()
	defer c.exhaustion.mu.Unlock()
	return c.exhaustion.times, c.exhaustion.last
}

const (
	minRetryWait = 50 * time.Millisecond // before the first retry
	maxRetryWait = time.Second           // before any retry
)

// waitForResources frees a resource after an attempt failed for lack of it, and waits. It returns false if the context
// has ended.
func (c *Client) waitForResources(ctx context.Context, err error, wait time.Duration) bool {
	c.exhaustion.record(err)
	c.closeIdle()
	return sleep(ctx, wait) == nil
}

// sleep waits, or returns an error if the context ends first.
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

// closeIdle closes all idle connections.
func (c *Client) closeIdle() {
	for c.conns.closeOldest() {
	}
}

// closeOneIdle closes an idle connection. It returns false if there is none.
func (c *Client) closeOneIdle() bool { return c.conns.closeOldest() }

// IsLocal reports whether the error concerns this machine or its proxy, and no host.
func (e *Error) IsLocal() bool {
	return e.Failure == page.Local || e.Failure == page.Proxy && e.Op == proxyOp
}
