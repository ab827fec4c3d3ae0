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

// A Host is a network namespace with its addresses.
type Host struct {
	Name  string
	Addrs []netip.Addr

	lab    *Lab
	space  string
	port   string // its end of the cable to the bridge
	mac    net.HardwareAddr
	groups map[string]string // folders of the control groups of its processes, by controller; nil: no limits
	disk   *disk             // nil: no disk of its own
}

// Addr returns the first of its addresses.
func (h *Host) Addr() netip.Addr { return h.Addrs[0] }

// within returns the addresses of the host that a prefix contains.
func (h *Host) within(prefix netip.Prefix) (found []netip.Addr) {
	for _, addr := range h.Addrs {
		if prefix.Contains(addr) {
			found = append(found, addr)
		}
	}
	return found
}

// Do calls f on the host. Sockets that f opens in its own goroutine, and processes that it starts, belong to the host
// permanently.
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
			return // without unlocking: the thread is never reused
		}
		runtime.UnlockOSThread()
	}()
	return f()
}
