package fetch

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/weburl"
)

// lookupTimeout limits the lookup of a target's name if a proxy is used. Possibly only the proxy can resolve it.
const lookupTimeout = 2 * time.Second

// localDomains contain only names of this machine and the local network: RFC 6761, 6762, 8375 and ICANN's .internal.
// Names without a dot are local, too.
var localDomains = []string{".localhost", ".local", ".home.arpa", ".internal", ".intranet", ".lan"}

// checkTarget returns an error if a target must not be requested through the proxy. The proxy may be in a network whose
// private addresses links of strange pages must not reach. It rejects private addresses in any spelling, local names,
// and names that resolve to a private address here. A name that does not resolve here is left to the proxy, and so are
// addresses that the proxy finds for other names. With socks5h, names are not looked up here.
func (p *proxy) checkTarget(ctx context.Context, c *Client, t target) error {
	if c.allowed.Has(t.host) || c.cfg.AllowPrivate || c.fixed.lookup(t.hostname, t.port) != nil {
		return nil
	}
	name := strings.ToLower(strings.TrimRight(t.hostname, "."))
	if a, ok := parseAnyAddr(name); ok {
		return refuse(name, a)
	}
	isLocal := func(domain string) bool { return strings.HasSuffix(name, domain) }
	if !strings.Contains(name, ".") || slices.ContainsFunc(localDomains, isLocal) {
		return fmt.Errorf("%s: %w", name, ErrPrivate)
	}
	if p.remoteDNS {
		return nil
	}
	short, cancel := ctx, func() {}
	if c.resolver.limiter == nil { // with a limiter, the lookup may have to wait long for its turn
		short, cancel = context.WithTimeout(ctx, min(lookupTimeout, c.cfg.ConnectTimeout))
	}
	defer cancel()
	addrs, err := c.resolver.resolve(short, name)
	if err != nil {
		return ctx.Err() // the proxy may be able to resolve it
	}
	for _, a := range addrs {
		if err := refuse(name, a); err != nil {
			return err
		}
	}
	return nil
}

func refuse(name string, a netip.Addr) error {
	if !isPrivate(a) {
		return nil
	}
	if name != a.String() {
		return fmt.Errorf("%s is %s: %w", name, a, ErrPrivate)
	}
	return fmt.Errorf("%s: %w", a, ErrPrivate)
}

// parseAnyAddr parses a host that is an IP address in any notation: a proxy may read 0x7f.1 or 017700000001 as browsers
// do. It returns the zero address for a host that looks like an address but is not valid.
func parseAnyAddr(host string) (a netip.Addr, ok bool) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a, true
	}
	if strings.Contains(host, ":") {
		return netip.Addr{}, true
	}
	u, err := weburl.Parse("http://" + host + "/")
	if err != nil {
		return netip.Addr{}, true
	}
	a, err = netip.ParseAddr(u.Hostname())
	return a, err == nil
}
