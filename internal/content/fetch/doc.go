// Package fetch performs single HTTP exchanges over HTTP/1 and HTTP/2, with limits against hostile servers.
//
// [Client.Get] requests one URL and fills a page.Response with the exact bytes that were received. It follows no
// redirects. It sends a request again only if a keep-alive connection turns out to be closed already, if the server
// refuses the request (HTTP/2) or requires HTTP/1.1, or, through another proxy, if a proxy fails. Callers interpret the
// response.
//
// # Structure
//
// No goroutine watches a connection between exchanges.
//
//	wire      TCP connection: bandwidth limit, times, address               wire.go
//	tls       handshake, inside a proxy's tunnel if there is one            dial.go, proxy.go
//	conn      connection for exchanges; idle ones are pooled                conn.go, pool.go
//	framer    follows a response's bytes and finds its end                  frame.go, head.go
//	session   HTTP/2: reads frames and checks that they are allowed         session.go, http2frame.go, http2head.go
//	exchange  one request and its response                                  exchange.go, http2.go
//
// An exchange writes the request at once, reads into the buffer that becomes the Response's Raw, and sets deadlines on
// the connection instead of using timers.
//
// Over HTTP/1 the package accepts as well-formed what net/http accepts; a fuzz test compares the two. It speaks HTTP/2
// if the server selects it, one exchange at a time on a connection. HTTP/2 responses have no such raw bytes, so a head
// is made from their header fields. docs/decisions/http1.md and http2.md give the reasons.
//
// # Hostile servers
//
// The package treats the server as hostile. It checks addresses when it dials them, after all name resolution, so that
// no DNS response leads into a private network. It does not request such addresses through a proxy, either. Every phase
// has a time limit and every buffer a size limit. A response that exceeds a limit is kept up to that point and marked
// as truncated.
package fetch
