package page

// A Failure is the reason why a visit got no response. Reports count failures by this word.
type Failure string

// The failures.
const (
	None        Failure = ""
	DNS         Failure = "dns"         // the name has no address, or its servers do not respond
	Connect     Failure = "connect"     // no route, or the connection timed out
	Refused     Failure = "refused"     // the server refused the connection
	TLS         Failure = "tls"         // the handshake or the certificate failed
	Timeout     Failure = "timeout"     // connected, but no response within the limit
	Reset       Failure = "reset"       // the connection broke before the response head was complete
	Malformed   Failure = "malformed"   // the response is not HTTP
	Private     Failure = "private"     // a private, loopback or link-local address that the crawl may not visit
	Proxy       Failure = "proxy"       // the proxy failed
	Unreachable Failure = "unreachable" // abandoned: the host throttled too often (status 429 or 503)
	NoRobots    Failure = "robots"      // the host's robots.txt is unavailable, which forbids everything for now
	Login       Failure = "login"       // the host requires a login, which failed
	// this machine had no file descriptor, port or buffer for the connection; not the host's fault
	Local    Failure = "local"
	Internal Failure = "internal" // a bug in kumo
)

// AffectsHost reports whether the failure concerns the whole host rather than a single URL.
func (f Failure) AffectsHost() bool {
	switch f {
	case DNS, Connect, Refused, TLS, Private, Proxy, Unreachable, Login:
		return true
	}
	return false
}
