package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// With Config.Transport, connections lead to a goroutine of this process instead of a server. It reads HTTP/1.1
// requests and passes them to the transport. The rest of the client does not know: limits, cookies and the recorded
// bytes are as with a server.

// reachTransport connects to the transport, in place of a target.
func (c *Client) reachTransport(_ context.Context, t target) (link, error) {
	own, peer := net.Pipe()
	ctx, cancel := context.WithCancel(c.ctx)
	conn := &transportConn{Conn: own, cancel: cancel}
	go func() {
		defer peer.Close()
		conn.serve(ctx, peer, t.scheme, c.cfg.Transport)
	}()
	w := c.newWire(conn)
	return link{w, w}, nil
}

// A transportConn is the client's end of a connection to a transport.
type transportConn struct {
	net.Conn
	cancel context.CancelFunc // ends the request in progress

	mu  sync.Mutex // guards err
	err error      // of the transport
}

// serve passes requests to a transport until one fails or the client closes the connection.
func (c *transportConn) serve(ctx context.Context, peer net.Conn, scheme string, to http.RoundTripper) {
	in := bufio.NewReader(peer)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return // the client has closed the connection
		}
		req.URL.Scheme, req.URL.Host, req.RequestURI = scheme, req.Host, ""
		res, err := to.RoundTrip(req.WithContext(ctx))
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("transport: %w", err)
			c.mu.Unlock()
			return
		}
		res.Proto, res.ProtoMajor, res.ProtoMinor = "HTTP/1.1", 1, 1
		if res.Request == nil {
			res.Request = req
		}
		if res.ContentLength < 0 && len(res.TransferEncoding) == 0 && !res.Close {
			res.TransferEncoding = []string{"chunked"} // keeps the connection usable
		}
		err = res.Write(peer)
		if res.Body != nil {
			_ = res.Body.Close() // Write has reported errors
		}
		_, _ = io.Copy(io.Discard, req.Body) // so that the next request is read from its beginning
		if err != nil || res.Close {
			return
		}
	}
}

// Read returns the transport's error where a server would have closed the connection.
func (c *transportConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		return n, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil && n == 0 {
		err = c.err
	}
	return n, err
}

// Close also cancels the context of the request in progress.
func (c *transportConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}
