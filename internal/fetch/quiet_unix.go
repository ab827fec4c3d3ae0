//go:build unix

package fetch

import (
	"net"
	"syscall"
)

// quietness returns a function that reports whether there is nothing to be read from a connection, not even its end. It does not wait.
func quietness(c net.Conn) func() bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return func() bool { return true } // not a socket, in tests
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return func() bool { return false }
	}
	var nothing bool
	var b [1]byte
	peek := func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
	return func() bool { return raw.Read(peek) == nil && nothing }
}
