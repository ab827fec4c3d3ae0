package weburl

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Domain returns the registered domain of a hostname of a [URL]: the public suffix and one more label.
// "www.example.co.uk" belongs to "example.co.uk". IP addresses, single labels and public suffixes are their own domain.
func Domain(hostname string) string {
	name := strings.TrimSuffix(hostname, ".")
	if strings.HasPrefix(name, "[") || endsInNumber([]byte(name)) {
		return name
	}
	suffix, _ := publicsuffix.PublicSuffix(name)
	if len(name) <= len(suffix) {
		return name
	}
	rest := name[:len(name)-len(suffix)-1]
	return name[strings.LastIndexByte(rest, '.')+1:]
}
