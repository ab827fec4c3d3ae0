package fetch

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// overrides are the addresses that the Config names: by host and port, each possibly *.
type overrides map[[2]string][]netip.Addr

// parseOverrides reads entries of the form HOST:PORT:ADDR[,ADDR]; an IPv6 address may have brackets.
func parseOverrides(entries []string) (overrides, error) {
	o := make(overrides, len(entries))
	for _, entry := range entries {
		part := strings.SplitN(entry, ":", 3)
		if len(part) != 3 || part[0] == "" {
			return nil, fmt.Errorf("resolve %q: want HOST:PORT:ADDR", entry)
		}
		if part[0] != "*" && strings.Contains(part[0], "*") {
			return nil, fmt.Errorf("resolve %q: a * stands for all hosts, not for a part of a name", entry)
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

// lookup returns nil for what has no entry. The more exact entry counts, a host more than a port.
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
