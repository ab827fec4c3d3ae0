package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
)

// A Client fetches URLs. Its methods are safe for concurrent use.
type Client struct {
	cfg        Config
	baseConfig Config // as passed to New, without defaults
	live       atomic.Pointer[liveSettings]
	secrets    bool // trusted hosts receive secret fields or cookies
	resolver   *resolver
	fixed      overrides
	limit      *rate.Limiter // nil: no limit
	proxies    *proxies      // nil: no proxies
	tls        *tls.Config
	conns      *pool
	sockets    *sockets // shared by all connections
	exhaustion exhaustion
	allowed    *weburl.Set // host keys whose addresses may be private, see Allow
	probePorts [2]string   // ports that Probe tries for a host without a port

	// connectTo opens a connection to a target. Tests replace it.
	connectTo func(context.Context, target) (link, error)

	budget      *budget
	scratch     *vfs.Scratch
	ownsScratch bool // Close closes scratch

	ctx   context.Context // canceled by Close; dialing and name lookups outlive the request that started them
	close context.CancelFunc
}

// A Request describes one HTTP request.
type Request struct {
	URL     string // canonical, http or https
	Trusted bool   // credentials, cookies and secret fields may be sent
	MaxBody int64  // bytes; 0: the limit of Config
	Head    bool   // HEAD request: the response has no body

	Form      []byte // posted as application/x-www-form-urlencoded, over HTTP/1; nil: GET or HEAD
	NoCookies bool   // ignore Config.Jar
	Private   bool   // the cookies that the response sets are secret

	// Header replaces the fields of Config for every host. A Cookie field in it is sent in addition to the jar's
	// cookies. nil: use the fields of Config. The fields must have passed CheckFields.
	Header http.Header

	// Validators of an earlier response, for a conditional request (304).
	ETag     string
	Modified time.Time // Last-Modified

	// OnArrival, if not nil, is called when the first bytes of the response arrive, before the Response's Buffers are
	// used. Many requests wait at a time, but few responses are being read.
	OnArrival func()
}

// New returns a Client. The caller must close it.
func New(cfg Config) (*Client, error) {
	c := &Client{cfg: cfg.withDefaults(), baseConfig: cfg, allowed: weburl.NewSet()}
	err := CheckFields(cfg.Header)
	if err != nil {
		return nil, err
	}
	if c.fixed, err = parseOverrides(cfg.Resolve); err != nil {
		return nil, err
	}
	if c.proxies, err = newProxies(c.cfg); err != nil {
		return nil, err
	}
	c.ctx, c.close = context.WithCancel(context.Background())
	m := newLiveSettings(c.cfg)
	c.live.Store(m)
	c.secrets = len(m.trusted.lines) > len(m.public.lines) || cfg.Cookies != nil || c.configuredCookie() != ""
	c.resolver = newResolver(c.ctx, c.cfg)
	c.resolver.waitForResources = c.waitForResources
	if c.proxies.hasAny() {
		c.resolver.failureTTL = proxiedFailureTTL
	}
	c.sockets = newSockets(c.cfg.Sockets, c.closeOneIdle)
	c.limit = newLimit(cfg.Bandwidth)
	c.connectTo, c.probePorts = c.reachNet, [2]string{"80", "443"}
	if cfg.Transport != nil {
		c.connectTo = c.reachTransport
	}
	c.tls = newTLS(cfg)
	c.budget, c.scratch = &budget{size: c.cfg.Memory}, c.cfg.Scratch
	if c.scratch == nil {
		c.scratch, c.ownsScratch = vfs.NewScratch("", nil, 0), true
	}
	c.conns = newPool(c.cfg.PerHost, c.cfg.MaxIdle)
	c.conns.socketWanted = c.sockets.hasWaiters
	return c, nil
}

func newTLS(cfg Config) *tls.Config {
	t := cfg.TLS.Clone()
	if t == nil {
		t = &tls.Config{}
	}
	t.InsecureSkipVerify = t.InsecureSkipVerify || cfg.InsecureTLS
	if !cfg.PostQuantumTLS && len(t.CurvePreferences) == 0 {
		t.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}
	}
	if cfg.LegacyTLS {
		t.MinVersion, t.CipherSuites = tls.VersionTLS10, legacySuites()
	}
	if t.ClientSessionCache == nil {
		t.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
	}
	return t
}

// legacySuites returns all cipher suites except RC4, which eavesdroppers can decrypt.
func legacySuites() (all []uint16) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !strings.Contains(s.Name, "RC4") {
			all = append(all, s.ID)
		}
	}
	return all
}

// Close stops the client's background work. Exchanges in progress fail or complete.
func (c *Client) Close() {
	c.close()
	c.conns.close()
	if c.ownsScratch {
		_ = c.scratch.Close() // the temporary file is no longer needed
	}
}

// Allow lets the client dial a host whose address is private. It is meant for the hosts of seeds. host is a host key,
// such as 127.0.0.1:8080 or localhost. With OnlyPublic it has no effect.
func (c *Client) Allow(host string) {
	if !c.baseConfig.OnlyPublic {
		c.allowed.Add(host)
	}
}

// Header returns the fields that requests currently carry, without cookies of the jar and without fields that depend on
// the URL or the connection. The caller owns the result.
func (c *Client) Header(trusted bool) http.Header {
	cfg := c.cfg
	cfg.UserAgent = c.live.Load().agent
	public, all := cfg.headers()
	if !trusted {
		return public.Clone()
	}
	all = all.Clone()
	if field := c.configuredCookie(); field != "" {
		all.Set(cookieField, field)
	}
	return all
}

// HasSecrets reports whether trusted hosts receive anything that other hosts do not.
func (c *Client) HasSecrets() bool { return c.secrets }

// Get performs one exchange and fills resp, reusing its buffers. It returns nil if a response arrived, even if the
// response was cut short or malformed after its head; resp records that. Otherwise it returns an *Error, and resp holds
// the bytes received so far, or an error that wraps ctx.Err().
func (c *Client) Get(ctx context.Context, req Request, resp *page.Response) error {
	*resp = page.Response{URL: req.URL, Start: c.cfg.Now(), Buffers: resp.Buffers}
	resp.Buffers.Empty()
	t, err := c.parseTarget(req.URL)
	if err != nil {
		return &Error{Failure: page.Internal, Op: "get", URL: req.URL, Err: err}
	}
	x := newExchange(ctx, c, req, t, resp)
	err = x.run()
	x.returnBuffers()
	resp.Total = time.Since(x.begin)
	return err
}

// Resolve returns the address that Get would try first for a host. It looks the name up if necessary. Behind a proxy
// and with a Transport the address is unknown, and Resolve returns the zero Addr.
func (c *Client) Resolve(ctx context.Context, hostname, port string) (netip.Addr, error) {
	if c.cfg.Transport != nil {
		return netip.Addr{}, nil
	}
	if (c.proxies.hasAny() || c.proxies.hostProxies != nil) &&
		c.proxies.forHost(hostname, net.JoinHostPort(hostname, port)) != nil {
		return netip.Addr{}, nil
	}
	addrs, _, err := c.addresses(ctx, hostname, port)
	switch {
	case ctx.Err() != nil:
		return netip.Addr{}, fmt.Errorf("resolve %s: %w", hostname, ctx.Err())
	case err != nil:
		return netip.Addr{}, &Error{Failure: page.DNS, Op: "resolve", URL: hostname, Err: err}
	}
	return addrs[0], nil
}
