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

// lookupTimeout is how long the name of a proxy's target is looked up here, where the proxy may be the only one who
// can.
const lookupTimeout = 2 * time.Second

// localDomains have names for this machine and its neighbours only: RFC 6761, 6762, 8375 and ICANN's .internal. So has
// a name without a dot.
var localDomains = []string{".localhost", ".local", ".home.arpa", ".internal", ".intranet", ".lan"}

// admit reports why a proxy must not be asked for a target: the proxy may stand in a network whose private addresses a
// stranger's link must not reach. An address is refused in every spelling, a name if it is a local one, or if it is
// found here and has a private address. A name that is not found here is the proxy's to judge, and so is what it finds
// for others; socks5h says that names are not to be looked up here.
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
	if c.resolver.limiter == nil { // else it may be long until it is the name's turn
		short, cancel = context.WithTimeout(ctx, min(lookupTimeout, c.cfg.ConnectTimeout))
	}
	defer cancel()
	addrs, err := c.resolver.resolve(short, name)
	if err != nil {
		return ctx.Err() // the proxy may know
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

// parseAnyAddr returns the address that a host is, however it is written: a proxy may read 0x7f.1 or 017700000001 as
// browsers do. What looks like an address and is none comes out as the zero one.
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
