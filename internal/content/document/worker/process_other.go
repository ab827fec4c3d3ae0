//go:build !unix

package worker

import "syscall"

// attributes are none. A child ends with its parent because its input is closed.
func attributes() *syscall.SysProcAttr { return nil }
