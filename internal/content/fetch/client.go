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

// A Client fetches. Its methods may be called by many goroutines at once.
type Client struct {
	cfg        Config
	baseConfig Config // without defaults
	live       atomic.Pointer[liveSettings]
	secrets    bool // trusted hosts are sent some
	resolver   *resolver
	fixed      overrides
	limit      *rate.Limiter // nil for no limit
	proxies    *proxies      // nil for none
	tls        *tls.Config
	conns      *pool
	sockets    *sockets // for all connections
	exhaustion exhaustion
	allowed    *weburl.Set // host keys, see Allow
	probePorts [2]string   // that Probe tries of hosts which name none

	// connectTo opens a connection to a target; a test may put another network in its place.
	connectTo func(context.Context, target) (link, error)

	budget      *budget
	scratch     *vfs.Scratch
	ownsScratch bool // to be closed

	ctx   context.Context // ends with Close; dialling and looking up names outlive the request that began them
	close context.CancelFunc
}

// A Request is one thing to ask for.
type Request struct {
	URL     string // canonical, http or https
	Trusted bool   // credentials, cookies and secret fields may be sent
	MaxBody int64  // instead of the Config's; 0 for that
	Head    bool   // ask by HEAD: the answer has no body

	Form      []byte // is posted, as application/x-www-form-urlencoded, by HTTP/1; nil: the URL is asked for
	NoCookies bool   // Config.Jar has nothing to do with it
	Private   bool   // what the answer sets is a secret

	// Header are the fields to be sent in place of the Config's, Cookie among them beside the jar's, to whichever host;
	// nil for those. CheckFields has passed them.
	Header http.Header

	// What an earlier answer said of itself: the server may say that it still holds (304).
	ETag     string
	Modified time.Time // Last-Modified

	// Arrives, unless nil, is called when an answer begins to come, and the Response needs Buffers: many wait, few are
	// read at once.
	OnArrival func()
}

// New returns a Client. The caller closes it.
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

// legacySuites are all suites but those of RC4, whose text can be read by who listens.
func legacySuites() (all []uint16) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !strings.Contains(s.Name, "RC4") {
			all = append(all, s.ID)
		}
	}
	return all
}

// Close ends what the client does in the background. Exchanges under way fail or run to their end.
func (c *Client) Close() {
	c.close()
	c.conns.close()
	if c.ownsScratch {
		_ = c.scratch.Close() // nothing in it is needed
	}
}

// Allow lets the client dial a host although its address is private. It is meant for the hosts of seeds; host is a host
// key, as in 127.0.0.1:8080 or localhost. With OnlyPublic it does nothing.
func (c *Client) Allow(host string) {
	if !c.baseConfig.OnlyPublic {
		c.allowed.Add(host)
	}
}

// Header returns the fields that a request is sent with as things are, but for cookies of the jar and what follows from
// the URL and the connection. They are the caller's.
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

// HasSecrets reports whether trusted hosts are sent anything that others are not.
func (c *Client) HasSecrets() bool { return c.secrets }

// Get does one exchange and fills resp, reusing its buffers. It returns nil when an answer came, be it cut short or
// damaged after its head: resp says so. Otherwise the error is an *Error, and resp holds the bytes that came; or it
// wraps ctx.Err().
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

// Resolve returns the address that Get would try first for a host, looked up if need be. Behind a proxy it is not
// known: the zero Addr.
func (c *Client) Resolve(ctx context.Context, hostname, port string) (netip.Addr, error) {
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
