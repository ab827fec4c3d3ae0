// Package fetch does one HTTP exchange, and does it right: [Client.Get] asks for one URL and fills a page.Response with
// the exact bytes that went over the wire. It follows no redirect and retries nothing but a request
// that met a keep-alive connection already closed; what an answer means is for others to say.
//
// Both HTTP/1 and HTTP/2 are spoken here, over connections that no goroutine watches between exchanges:
//
//	wire      the TCP connection: bandwidth limit, times, address         wire.go
//	tls       the handshake, inside a proxy's tunnel where there is one   dial.go, proxy.go
//	conn      what is spoken over; idle ones wait in a pool               conn.go, pool.go
//	framer    follows an answer's bytes and knows where it ends           frame.go, head.go
//	session   HTTP/2: what comes in frames, and may come                  session.go, http2frame.go, http2head.go
//	exchange  one request and its answer                                  exchange.go, http2.go
//
// An exchange writes the request at once, reads into the buffer that becomes the Response's Raw, and sets the
// connection's deadlines in place of timers. Over HTTP/1 what is well-formed is what net/http takes for it: a fuzz test
// compares them. HTTP/2 is spoken where the server chooses it, one exchange at a time on a connection; its answers have
// no such bytes, so they get a head made from their fields. docs/decisions/http1.md and http2.md say why.
//
// The other side is taken for hostile. Addresses are checked when they are dialled, after all name resolution, so that
// no DNS answer leads into a private network; a proxy is not asked for them either. Every phase has a time limit and
// every buffer a bound; what exceeds them is kept as far as it came and marked as truncated.
package fetch
