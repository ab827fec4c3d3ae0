//go:build unix

package fetch

import (
	"errors"
	"net"
	"syscall"
)

// A socket is asked whether it can be read, without reading.
type socket struct {
	raw   syscall.RawConn // nil for what is no socket, in tests
	byte  [1]byte
	empty bool // there was nothing to be read
	asked bool // in this wait
	peek  func(fd uintptr) bool
	await func(fd uintptr) bool
}

func newSocket(c net.Conn) *socket {
	s := &socket{}
	s.peek = func(fd uintptr) bool {
		for {
			_, _, err := syscall.Recvfrom(int(fd), s.byte[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if !errors.Is(err, syscall.EINTR) {
				s.empty = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
				break
			}
		}
		return true
	}
	s.await = func(fd uintptr) bool {
		if s.asked {
			return true // it was woken, since there is something
		}
		s.asked = true
		return s.peek(fd) && !s.empty
	}
	if c, ok := c.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn() // where it fails, so does reading
	}
	return s
}

// isUntouched reports whether there is nothing to be read, not even the connection's end. It does not wait.
func (s *socket) quiet() bool { return s.raw == nil || s.raw.Read(s.peek) == nil && s.empty }

// wait waits until there is something to be read, or the read deadline.
func (s *socket) wait() error {
	if s.raw == nil {
		return nil
	}
	s.asked = false
	return s.raw.Read(s.await)
}
