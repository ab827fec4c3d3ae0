package weburl

import (
	"net/netip"
	"strings"
)

// IsAddress reports whether a hostname is an IP address or a name of this machine, so that no DNS lookup is needed.
func IsAddress(hostname string) bool {
	if hostname == "localhost" || strings.HasSuffix(hostname, ".localhost") {
		return true
	}
	if last := len(
		hostname,
	) - 1; last < 0 ||
		!strings.Contains(hostname, ":") && (hostname[last] < '0' || hostname[last] > '9') {
		return false // avoids the cost of an error
	}
	_, err := netip.ParseAddr(strings.Trim(hostname, "[]"))
	return err == nil
}
