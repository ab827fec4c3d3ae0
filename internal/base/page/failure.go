package page

// A Failure says in one word why a visit brought no answer. It is what reports count by.
type Failure string

// The failures.
const (
	None        Failure = ""
	DNS         Failure = "dns"         // the name has no address, or its servers do not answer
	Connect     Failure = "connect"     // no route, or no answer to connect within the limit
	Refused     Failure = "refused"     // the server refused the connection
	TLS         Failure = "tls"         // the handshake or the certificate failed
	Timeout     Failure = "timeout"     // connected, but no answer within the limit
	Reset       Failure = "reset"       // the connection broke before an answer's head was complete
	Malformed   Failure = "malformed"   // what came is not HTTP
	Private     Failure = "private"     // a private, loopback or link-local address that the crawl may not visit
	Proxy       Failure = "proxy"       // the proxy failed
	Unreachable Failure = "unreachable" // given up: its host asked to be left alone too often
	NoRobots    Failure = "robots"      // its host's robots.txt cannot be had, which forbids everything for now
	Login       Failure = "login"       // its host asks for a login, and that has failed
	// this machine had no file descriptor, port or buffer left for a connection: no host's fault
	Local    Failure = "local"
	Internal Failure = "internal" // kumo's own fault
)

// AffectsHost reports whether the failure speaks of the whole host rather than of one URL.
func (f Failure) AffectsHost() bool {
	switch f {
	case DNS, Connect, Refused, TLS, Private, Proxy, Unreachable, Login:
		return true
	}
	return false
}
