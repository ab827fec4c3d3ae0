package fetch

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"kumo/internal/base/vfs"
	"kumo/internal/content/cookies"
)

// A Config configures a Client. The zero value works.
type Config struct {
	UserAgent string
	// further fields, see CheckField; fields with the name of a secret are sent to trusted hosts only
	Header   http.Header
	User     string // for Basic authentication, sent to trusted hosts only; "": none
	Password string
	Cookies  *Cookies     // sent to trusted hosts only; nil: none
	Jar      *cookies.Jar // stores the cookies that servers set; nil: none
	Proxy    *url.URL     // http, https or socks5, with user and password if the proxy requires them; nil: none
	// Proxies are further proxies. If a domain has several, each host uses one of them as long as it works. A failed
	// proxy is excluded for a while, and its hosts use the others.
	Proxies []ProxyRule
	// HostProxies returns the proxies of a host, which replace all others. The host includes its port unless that is
	// the scheme's default. A nil result means that the host has no proxies of its own.
	HostProxies func(host string) *ProxySet
	// called with a proxy, SCHEME://HOST:PORT, and the error that excluded it, or nil when it works again
	OnProxyChange func(proxy string, err error)
	// Environment is the proxy configuration of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, used if none of the above is set.
	// nil: none.
	Environment *httpproxy.Config

	InsecureTLS bool        // accept any certificate
	TLS         *tls.Config // TLS settings, except ServerName and NextProtos; nil: Go's defaults
	// PostQuantumTLS also enables ML-KEM key exchange, if TLS sets no CurvePreferences. A handshake then takes 0.25 ms
	// more CPU and 1.2 KB. Recorded traffic stays safe from future quantum computers.
	PostQuantumTLS bool
	LegacyTLS      bool // also accept TLS 1.0 and 1.1, RSA key exchange and other suites that browsers have removed

	ConnectTimeout time.Duration // for a name lookup, and separately for dialing with the TLS handshake; default 10 s
	Timeout        time.Duration // for the response's head, and between two reads of its body; default 30 s
	MaxTime        time.Duration // for the whole exchange, including the wait for a connection; default 10 × Timeout
	MaxBody        int64         // bytes of a response's body, as transferred; default 32 MiB
	MaxBodyOf      []TypeLimit   // MaxBody for some media types; the first that matches counts
	MaxHeader      int64         // bytes of a response's head, including interim responses; default 256 KiB

	PerHost int // connections to a host; 0: no limit
	// MaxIdle limits the idle connections to all hosts. The default is a quarter of the files that may be open, at most
	// 16,384.
	MaxIdle int
	Sockets int // open connections, including idle ones; 0: no limit
	Lookups int // concurrent name lookups, each with up to two sockets; 0: no limit
	// LookupRate limits name lookups per second. A lookup sends one or two queries; cached names do not count. 0: no
	// limit.
	LookupRate float64

	// Memory limits the bytes of all responses in progress that are in memory, in addition to 32 KiB for each response.
	// The default is 64 MiB.
	Memory  int64
	Scratch *vfs.Scratch // holds the data beyond Memory; default a temporary file

	AllowPrivate bool     // dial private addresses too
	OnlyPublic   bool     // no private addresses, not even of seeds: the user has not named them
	Resolve      []string // HOST:PORT:ADDR[,ADDR] as in curl; HOST and PORT may be *
	DNSServer    string   // host:port of a recursive name server; "": the system's resolver
	Resolver     Resolver // replaces both; nil: not set
	Bandwidth    int64    // bytes per second that all connections together may receive; 0: no limit

	// Transport replaces the network: all requests go through it, and no name is looked up. nil: not set.
	Transport http.RoundTripper

	Now func() time.Time // default time.Now
}

// LongestExchange returns the time limit of an exchange.
func (cfg Config) LongestExchange() time.Duration { return cfg.withDefaults().MaxTime }

// maxLength is a limit for limits, so that sums of them fit into an int.
const maxLength = math.MaxInt / 4

const (
	accept         = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	acceptEncoding = "gzip, deflate, br, zstd"
	idleTimeout    = 90 * time.Second
	defaultFiles   = 1024 // open files, if the system does not report its limit
)

func (cfg Config) withDefaults() Config {
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, 10*time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.MaxTime = cmp.Or(cfg.MaxTime, 10*cfg.Timeout)
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 32<<20), maxLength)
	cfg.MaxHeader = min(cmp.Or(cfg.MaxHeader, 256<<10), maxLength)
	cfg.Memory = max(cmp.Or(cfg.Memory, 64<<20), 4*min(cfg.MaxHeader, 1<<20)) // at least enough for a head
	cfg.MaxIdle = cmp.Or(cfg.MaxIdle, min(files()/4, 1<<14))
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "kumo")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// headers returns the fields for all hosts and the fields for trusted hosts.
func (cfg Config) headers() (public, trusted http.Header) {
	public = http.Header{"User-Agent": {cfg.UserAgent}, "Accept": {accept}, "Accept-Encoding": {acceptEncoding}}
	secrets := make(http.Header)
	if cfg.User != "" {
		secrets.Set("Authorization", basicAuth(cfg.User, cfg.Password))
	}
	for name, values := range cfg.Header {
		name = http.CanonicalHeaderKey(name)
		if name == cookieField {
			continue // sent in one Cookie field with the other cookies
		}
		if IsSecret(name) {
			secrets[name] = values
		} else {
			public[name] = values
		}
	}
	trusted = public.Clone()
	for name, values := range secrets {
		trusted[name] = values
	}
	return public, trusted
}

// CheckField returns an error if a header field cannot be in [Config.Header]. The error names the alternative.
func CheckField(name, value string) error {
	lower := strings.ToLower(name)
	switch {
	case !validName(name) || strings.Contains(name, " "):
		return fmt.Errorf("%q is not a valid field name", name)
	case !sendable(value):
		return fmt.Errorf("the value of %s contains a control character", name)
	case lower == "host":
		return errors.New("the field follows from each URL; --resolve HOST:PORT:ADDR sends the requests for a host to " +
			"another address")
	case lower == "proxy-authorization":
		return errors.New("put the user and password of a proxy into --proxy")
	case lower == "content-length" || lower == "expect" || lower == "trailer":
		return errors.New("the field describes a request body, and requests have none")
	case notOverHTTP2[lower] || lower == "te" || lower == "http2-settings":
		return errors.New("the field controls the connection, which kumo manages")
	}
	return nil
}

// CheckFields returns an error if any of the header fields cannot be sent, as CheckField does.
func CheckFields(h http.Header) error {
	for name, values := range h {
		for _, value := range values {
			if err := CheckField(name, value); err != nil {
				return fmt.Errorf("header field %q: %w", name, err)
			}
		}
	}
	return nil
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// IsSecret reports whether a header field with this name has a secret value.
func IsSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"auth", "cookie", "token", "secret", "key", "passw", "session", "credential",
		"signature", "jwt"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func hasSecret(h http.Header) bool {
	for name := range h {
		if IsSecret(name) {
			return true
		}
	}
	return false
}
