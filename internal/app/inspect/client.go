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
	maxEndpoint = 4 << 10 // bytes of the file
	maxLine     = 8 << 20 // bytes of a line of an answer
)

var (
	// ErrUnreachable is a server that is not there, or not any more: its crawl is just starting or ending, or was killed.
	ErrUnreachable = errors.New("the crawl does not answer")
	// ErrOtherMachine is a server on another machine.
	ErrOtherMachine = errors.New("the crawl runs on another machine: look from there")
)

var (
	_ Source       = (*Client)(nil)
	_ CurveReader  = (*Client)(nil)
	_ BlockCounter = (*Client)(nil)
	_ Snapshotter  = (*Client)(nil)
	_ Setter       = (*Client)(nil)
	_ Controller   = (*Client)(nil)
)

// A Client asks a crawl that runs.
type Client struct {
	endpoint endpoint
	http     *http.Client
}

// Dial reads the file of a server and sees whether it answers. The error is ErrUnreachable where it is worth asking again in a
// moment.
func Dial(ctx context.Context, file string) (*Client, error) {
	c := &Client{http: &http.Client{Transport: &http.Transport{DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ResponseHeaderTimeout: time.Minute}}} // no proxy
	if err := c.endpoint.read(file); err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, http.MethodGet, "", nil, nil)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, resp.Body.Close()
}

// Close lets the connection go.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// read reads the file. It may have been written by a crawl on another machine, or by nobody who knows how.
func (c *endpoint) read(name string) error {
	text, err := vfs.ReadFile(vfs.OS, name, maxEndpoint)
	if errors.Is(err, os.ErrNotExist) {
		return ErrUnreachable
	}
	if err != nil {
		return fmt.Errorf("read where the crawl can be asked: %w", err)
	}
	if err := json.Unmarshal(text, c); err != nil {
		return fmt.Errorf("%s does not say where the crawl can be asked: %w", name, err)
	}
	if c.Version != version {
		return fmt.Errorf("%s: version %d: the crawl is another kumo's; look with that one", name, c.Version)
	}
	if host, err := os.Hostname(); err == nil && host != c.Host {
		return fmt.Errorf("%w: on %s", ErrOtherMachine, c.Host)
	}
	if a, err := netip.ParseAddrPort(c.Address); err != nil || !a.Addr().IsLoopback() {
		return fmt.Errorf("%s: %q is no address of this machine", name, c.Address)
	}
	return nil
}

// Status is Source's.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return onlyValue(query[*Status](ctx, c, "status"))
}

// Explain is Source's.
func (c *Client) Explain(ctx context.Context, u string) (*Explanation, error) {
	return onlyValue(query[*Explanation](ctx, c, "explain", "url", u))
}

// Hosts is Source's.
func (c *Client) Hosts(ctx context.Context, n int) iter.Seq2[Host, error] {
	return query[Host](ctx, c, "hosts", "n", strconv.Itoa(n))
}

// Queue is Source's.
func (c *Client) Queue(ctx context.Context, host string, n int) iter.Seq2[Item, error] {
	return query[Item](ctx, c, "queue", "host", host, "n", strconv.Itoa(n))
}

// Seen is Source's.
func (c *Client) Seen(ctx context.Context, prefix string, n int) iter.Seq2[Known, error] {
	return query[Known](ctx, c, "seen", "prefix", prefix, "n", strconv.Itoa(n))
}

// HostsFrom is Source's.
func (c *Client) HostsFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Host, error] {
	return query[Host](ctx, c, "hosts-from", "prefix", prefix, "after", after, "n", strconv.Itoa(n))
}

// SeenFrom is Source's.
func (c *Client) SeenFrom(ctx context.Context, prefix, after string, n int) iter.Seq2[Known, error] {
	return query[Known](ctx, c, "seen-from", "prefix", prefix, "after", after, "n", strconv.Itoa(n))
}

// Top is Source's.
func (c *Client) Top(ctx context.Context, n int, bySite bool) iter.Seq2[Important, error] {
	return query[Important](ctx, c, "top", "n", strconv.Itoa(n), "sites", strconv.FormatBool(bySite))
}

// Curves is Curver's.
func (c *Client) Curves(ctx context.Context) (*stats.Curves, error) {
	return onlyValue(query[*stats.Curves](ctx, c, "curves"))
}

// Blocked is Blocker's.
func (c *Client) Blocked(ctx context.Context, rules []string) (*Blocked, error) {
	return post[*Blocked](ctx, c, "blocked", rules)
}

// Snapshot is Snapshooter's.
func (c *Client) Snapshot(ctx context.Context, target string) iter.Seq2[Copied, error] {
	return request[Copied](ctx, c, http.MethodPost, "snapshot", nil, "target", target)
}

// Set is Setter's.
func (c *Client) Set(ctx context.Context, changes []Setting) ([]Setting, error) {
	was, err := post[[]Setting](ctx, c, "set", changes)
	if err != nil && err.Error() == ErrConflict.Error() {
		err = ErrConflict
	}
	return was, err
}

// Pause is Steerer's.
func (c *Client) Pause(ctx context.Context, on bool) error {
	_, err := onlyValue(request[bool](ctx, c, http.MethodPost, "pause", nil, "on", strconv.FormatBool(on)))
	return err
}

// Stop is Steerer's.
func (c *Client) Stop(ctx context.Context) error {
	_, err := onlyValue(request[bool](ctx, c, http.MethodPost, "stop", nil))
	return err
}

// Add is Steerer's.
func (c *Client) Add(ctx context.Context, urls []string) (int, error) {
	return post[int](ctx, c, "add", urls)
}

// query sends a question, whose fields are names and values in turn, and gives the answer's values as they come.
func query[T any](ctx context.Context, c *Client, verb string, fields ...string) iter.Seq2[T, error] {
	return request[T](ctx, c, http.MethodGet, verb, nil, fields...)
}

// post sends a question with a body, and returns the answer's one value.
func post[T any](ctx context.Context, c *Client, verb string, body any) (answer T, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return answer, err
	}
	return onlyValue(request[T](ctx, c, http.MethodPost, verb, text))
}

// onlyValue is the one value of an answer.
func onlyValue[T any](values iter.Seq2[T, error]) (value T, err error) {
	for value, err := range values {
		return value, err
	}
	return value, ErrUnreachable
}

// request is ask by a method, with a body.
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
				err = fmt.Errorf("what answers at %s is not a crawl: %w", c.endpoint.Address, err)
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
		yield(none, fmt.Errorf("%w: it ended while it was asked", ErrUnreachable))
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
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // it is only for the message
	if resp.StatusCode == http.StatusUnauthorized {         // the file is of the moment before
		return nil, fmt.Errorf("%w: what listens at %s says: %s", ErrUnreachable, c.endpoint.Address,
			strings.TrimSpace(string(text)))
	}
	return nil, fmt.Errorf("ask the crawl: %s: %s", resp.Status, strings.TrimSpace(string(text)))
}
