// Package fetch does one HTTP exchange, and does it right: [Client.Get] asks for one URL and fills a page.Response with the
// exact bytes that went over the wire. It follows no redirect, keeps no cookie and retries nothing but a request that met a
// keep-alive connection already closed; what an answer means is for others to say.
//
// net/http speaks the protocol over connections of this package's own making:
//
//	wire   the TCP connection: bandwidth limit, times, address          wire.go
//	tls    the handshake, inside a proxy's tunnel where there is one    dial.go, proxy.go
//	tap    HTTP/1 only: records the bytes for the exchange at hand      tap.go
//
// HTTP/2 has no such bytes, so its exchanges get a head made from their fields.
//
// The other side is taken for hostile. Addresses are checked when they are dialled, after all name resolution, so that no
// DNS answer leads into a private network. Every phase has a time limit and every buffer a bound; what exceeds them is kept as
// far as it came and marked as truncated.
package fetch
