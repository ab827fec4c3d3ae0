package weburl

import (
	"net/netip"
	"strings"
)

// NamesAddress reports whether a hostname is an address, or this machine by name: a seed that says so is allowed to be
// there.
func NamesAddress(hostname string) bool {
	if hostname == "localhost" || strings.HasSuffix(hostname, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(hostname, "[]"))
	return err == nil
}
