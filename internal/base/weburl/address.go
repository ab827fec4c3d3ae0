package weburl

import (
	"net/netip"
	"strings"
)

// IsAddress reports whether a hostname is an address, or this machine by name, so that it is not looked up.
func IsAddress(hostname string) bool {
	if hostname == "localhost" || strings.HasSuffix(hostname, ".localhost") {
		return true
	}
	if last := len(
		hostname,
	) - 1; last < 0 ||
		!strings.Contains(hostname, ":") && (hostname[last] < '0' || hostname[last] > '9') {
		return false // without the cost of an error
	}
	_, err := netip.ParseAddr(strings.Trim(hostname, "[]"))
	return err == nil
}
