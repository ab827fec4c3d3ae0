//go:build !unix

package fetch

import "net"

// A socket cannot be polled on this system. Unsolicited data is noticed only if it arrived with the previous response,
// and a buffer is allocated before the response arrives.
type socket struct{}

func newSocket(net.Conn) *socket { return &socket{} }
func (s *socket) quiet() bool    { return true }
func (s *socket) wait() error    { return nil }
