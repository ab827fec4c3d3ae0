//go:build !unix

package fetch

import "net"

// A socket cannot be asked here whether it can be read. What a server has said unasked is noticed only if it came with
// the answer before, and a buffer is taken before the answer comes.
type socket struct{}

func newSocket(net.Conn) *socket { return &socket{} }
func (s *socket) quiet() bool    { return true }
func (s *socket) wait() error    { return nil }
