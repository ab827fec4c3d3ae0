package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// A Host is a namespace with its addresses.
type Host struct {
	Name  string
	Addrs []netip.Addr

	lab    *Lab
	space  string
	port   string // its end of the cable at the bridge
	mac    net.HardwareAddr
	groups map[string]string // by controller, the folders of the groups that hold its processes; nil: no limits
	disk   *disk             // nil: none of its own
}

// Addr is the first of its addresses.
func (h *Host) Addr() netip.Addr { return h.Addrs[0] }

// within are those of its addresses that a prefix contains.
func (h *Host) within(prefix netip.Prefix) (found []netip.Addr) {
	for _, addr := range h.Addrs {
		if prefix.Contains(addr) {
			found = append(found, addr)
		}
	}
	return found
}

// Do calls f on the host: sockets that f opens, in its own goroutine, belong to the host for good, and so do processes
// that it starts.
func (h *Host) Do(f func() error) error { return in(h.space, f) }

func in(space string, f func() error) (err error) {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open(filepath.Join(namespaceDir, space))
	if err != nil {
		return err
	}
	defer there.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter namespace %s: %w", space, err)
	}
	defer func() {
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, back)
			return // still locked: the thread is never used again
		}
		runtime.UnlockOSThread()
	}()
	return f()
}
