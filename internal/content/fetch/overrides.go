package fetch

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// overrides are the configured addresses by host and port. Each of the two may be *.
type overrides map[[2]string][]netip.Addr

// parseOverrides parses entries of the form HOST:PORT:ADDR[,ADDR]. An IPv6 address may have brackets.
func parseOverrides(entries []string) (overrides, error) {
	o := make(overrides, len(entries))
	for _, entry := range entries {
		part := strings.SplitN(entry, ":", 3)
		if len(part) != 3 || part[0] == "" {
			return nil, fmt.Errorf("resolve %q: want HOST:PORT:ADDR", entry)
		}
		if part[0] != "*" && strings.Contains(part[0], "*") {
			return nil, fmt.Errorf("resolve %q: * can replace only a whole host name", entry)
		}
		if _, err := strconv.ParseUint(part[1], 10, 16); err != nil && part[1] != "*" {
			return nil, fmt.Errorf("resolve %q: port %q is neither a number nor *", entry, part[1])
		}
		key := [2]string{strings.ToLower(part[0]), part[1]}
		for s := range strings.SplitSeq(part[2], ",") {
			a, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(s), "[]"))
			if err != nil {
				return nil, fmt.Errorf("resolve %q: %w", entry, err)
			}
			o[key] = append(o[key], a.Unmap())
		}
	}
	return o, nil
}

// lookup returns nil if no entry matches. An exact host takes precedence over an exact port.
func (o overrides) lookup(hostname, port string) []netip.Addr {
	if len(o) == 0 {
		return nil
	}
	for _, key := range [...][2]string{{hostname, port}, {hostname, "*"}, {"*", port}, {"*", "*"}} {
		if addrs := o[key]; addrs != nil {
			return addrs
		}
	}
	return nil
}
