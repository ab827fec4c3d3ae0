//go:build unix

package fetch

import (
	"errors"
	"net"
	"syscall"
)

// A socket reports whether data can be read, without reading it.
type socket struct {
	raw   syscall.RawConn // nil if the connection is not a socket, as in tests
	byte  [1]byte
	empty bool // there was no data
	asked bool // already polled in this wait
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
			return true // woken up because there is data
		}
		s.asked = true
		return s.peek(fd) && !s.empty
	}
	if c, ok := c.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn() // if it fails, reading fails, too
	}
	return s
}

// quiet reports whether there is nothing to read, not even the end of the connection. It does not block.
func (s *socket) quiet() bool { return s.raw == nil || s.raw.Read(s.peek) == nil && s.empty }

// wait blocks until there is data or the read deadline expires.
func (s *socket) wait() error {
	if s.raw == nil {
		return nil
	}
	s.asked = false
	return s.raw.Read(s.await)
}
