package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

const (
	maxEndpoint = 4 << 10 // bytes of the endpoint file
	maxLine     = 8 << 20 // bytes of a line of a response
)

var (
	// ErrUnreachable means that no server answers: the crawl is just starting or ending, or was killed.
	ErrUnreachable = errors.New("the crawl does not answer")
	// ErrOtherMachine means that the server runs on another machine.
	ErrOtherMachine = errors.New("the crawl runs on another machine: run this command there")
)

var (
	_ Source       = (*Client)(nil)
	_ CurveReader  = (*Client)(nil)
	_ BlockCounter = (*Client)(nil)
	_ Snapshotter  = (*Client)(nil)
	_ Setter       = (*Client)(nil)
	_ Controller   = (*Client)(nil)
)

// A Client queries a running crawl.
type Client struct {
	endpoint endpoint
	http     *http.Client
}

// Dial reads a server's endpoint file and checks that the server answers. With ErrUnreachable, it is worth trying
// again.
func Dial(ctx context.Context, file string) (*Client, error) {
	c := &Client{http: &http.Client{Transport: &http.Transport{DisableCompression: true,
		// no proxy
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ResponseHeaderTimeout: time.Minute}}}
	if err := c.endpoint.read(file); err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, http.MethodGet, "", nil, nil)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, resp.Body.Close()
}

// Close closes the connection.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// read reads the file. A crawl on another machine may have written it, or another program.
func (c *endpoint) read(name string) error {
	text, err := vfs.ReadFile(vfs.OS, name, maxEndpoint)
	if errors.Is(err, os.ErrNotExist) {
		return ErrUnreachable
	}
	if err != nil {
		return fmt.Errorf("read the crawl's endpoint: %w", err)
	}
	if err := json.Unmarshal(text, c); err != nil {
		return fmt.Errorf("read the crawl's endpoint from %s: %w", name, err)
	}
	if c.Version != version {
		return fmt.Errorf("%s has version %d: use the kumo that runs the crawl", name, c.Version)
	}
	if host, err := os.Hostname(); err == nil && host != c.Host {
		return fmt.Errorf("%w: on %s", ErrOtherMachine, c.Host)
	}
	if a, err := netip.ParseAddrPort(c.Address); err != nil || !a.Addr().IsLoopback() {
		return fmt.Errorf("%s: %q is not an address of this machine", name, c.Address)
	}
	return nil
}

// Status implements [Source].
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return onlyValue(query[*Status](ctx, c, "status"))
}

// Explain implements [Source].
func (c *Client) Explain(ctx context.Context, u string) (*Explanation, error) {
	return onlyValue(query[*Explanation](ctx, c, "explain", "url", u))
}

// Hosts implements [Source].
func (c *Client) Hosts(ctx context.Context, n int) iter.Seq2[Host, error] {
	return query[Host](ctx, c, "hosts", "n", strconv.Itoa(n))
}

// Queue implements [Source].
func (c *Client) Queue(ctx context.Context, host string, n int) iter.Seq2[Item, error] {
	return query[Item](ctx, c, "queue", "host", host, "n", strconv.Itoa(n))
}

// Seen implements [Source].
func (c *Client) Seen(ctx context.Context, prefix string, n int) iter.Seq2[Known, error] {
	return query[Known](ctx, c, "seen", "prefix", prefix, "n", strconv.Itoa(n))
}

// HostsFrom implements [Source].
func (c *Client) HostsFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Host, error] {
	return query[Host](ctx, c, "hosts-from", "prefix", prefix, "after", after, "n", strconv.Itoa(n))
}

// SeenFrom implements [Source].
func (c *Client) SeenFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Known, error] {
	return query[Known](ctx, c, "seen-from", "prefix", prefix, "after", after, "n", strconv.Itoa(n))
}

// Top implements [Source].
func (c *Client) Top(ctx context.Context, n int, bySite bool) iter.Seq2[Important, error] {
	return query[Important](ctx, c, "top", "n", strconv.Itoa(n), "sites", strconv.FormatBool(bySite))
}

// Curves implements [CurveReader].
func (c *Client) Curves(ctx context.Context) (*stats.Curves, error) {
	return onlyValue(query[*stats.Curves](ctx, c, "curves"))
}

// Blocked implements [BlockCounter].
func (c *Client) Blocked(ctx context.Context, rules []string) (*Blocked, error) {
	return post[*Blocked](ctx, c, "blocked", rules)
}

// Snapshot implements [Snapshotter].
func (c *Client) Snapshot(ctx context.Context, target string) iter.Seq2[Copied, error] {
	return request[Copied](ctx, c, http.MethodPost, "snapshot", nil, "target", target)
}

// Set implements [Setter].
func (c *Client) Set(ctx context.Context, changes []Setting) ([]Setting, error) {
	was, err := post[[]Setting](ctx, c, "set", changes)
	if err != nil && err.Error() == ErrConflict.Error() {
		err = ErrConflict
	}
	return was, err
}

// Pause implements [Controller].
func (c *Client) Pause(ctx context.Context, on bool) error {
	_, err := onlyValue(request[bool](ctx, c, http.MethodPost, "pause", nil, "on", strconv.FormatBool(on)))
	return err
}

// Stop implements [Controller].
func (c *Client) Stop(ctx context.Context) error {
	_, err := onlyValue(request[bool](ctx, c, http.MethodPost, "stop", nil))
	return err
}

// Add implements [Controller].
func (c *Client) Add(ctx context.Context, urls []string) (int, error) {
	return post[int](ctx, c, "add", urls)
}

// query sends a GET request and yields the values of the response as they arrive. fields alternates names and values.
func query[T any](ctx context.Context, c *Client, verb string, fields ...string) iter.Seq2[T, error] {
	return request[T](ctx, c, http.MethodGet, verb, nil, fields...)
}

// post sends a request with a body, and returns the single value of the response.
func post[T any](ctx context.Context, c *Client, verb string, body any) (answer T, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return answer, err
	}
	return onlyValue(request[T](ctx, c, http.MethodPost, verb, text))
}

// onlyValue returns the single value of a response.
func onlyValue[T any](values iter.Seq2[T, error]) (value T, err error) {
	for value, err := range values {
		return value, err
	}
	return value, ErrUnreachable
}

// request is query with a given method and body.
func request[T any](ctx context.Context, c *Client, method, verb string, body []byte,
	fields ...string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		resp, err := c.send(ctx, method, verb, fields, body)
		if err != nil {
			yield(none, err)
			return
		}
		defer resp.Body.Close()
		in := bufio.NewScanner(resp.Body)
		in.Buffer(make([]byte, 0, 64<<10), maxLine)
		for in.Scan() {
			var l line[T]
			err := json.Unmarshal(in.Bytes(), &l)
			switch {
			case err != nil:
				err = fmt.Errorf("%s does not answer like a crawl: %w", c.endpoint.Address, err)
			case l.Error == ErrIncomplete.Error():
				err = ErrIncomplete
			case l.Error != "":
				err = errors.New(l.Error)
			case l.End:
				return
			}
			if !yield(l.Value, err) || err != nil {
				return
			}
		}
		yield(none, fmt.Errorf("%w: it ended during the request", ErrUnreachable))
	}
}

func (c *Client) send(ctx context.Context, method, verb string, fields []string, body []byte) (*http.Response, error) {
	query := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		query.Set(fields[i], fields[i+1])
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.endpoint.Address+"/"+verb+"?"+query.Encode(),
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.endpoint.Token)
	resp, err := c.http.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // only used in the error message
	if resp.StatusCode == http.StatusUnauthorized {         // the endpoint file may be of an earlier run
		return nil, fmt.Errorf("%w: the server at %s answers: %s", ErrUnreachable, c.endpoint.Address,
			strings.TrimSpace(string(text)))
	}
	return nil, fmt.Errorf("query the crawl: %s: %s", resp.Status, strings.TrimSpace(string(text)))
}
