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

// A Config says how to fetch. Its zero value works.
type Config struct {
	UserAgent string
	Header    http.Header // further fields, see CheckField; those with a secret's name are sent to trusted hosts only
	User      string      // for Basic authentication, sent to trusted hosts only; "" for none
	Password  string
	Cookies   *Cookies     // sent to trusted hosts only; nil for none
	Jar       *cookies.Jar // keeps what servers set, and says what is sent to them; nil for none
	Proxy     *url.URL     // http, https or socks5, with user and password if it asks for them; nil for none
	// further proxies: of several for a domain each host keeps to one while that works; one that fails is left out for a
	// while, and its hosts go through others
	Proxies []ProxyRule
	// what a host, with its port if that is not the scheme's, goes through in place of all that; nil: it has nothing of
	// its own
	HostProxies   func(host string) *ProxySet
	OnProxyChange func(proxy string, err error) // is told of one, SCHEME://HOST:PORT, that is left out or (nil) works again
	// kind proxy is for which URL where there is none of these, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY have it; nil for
	// none
	Environment *httpproxy.Config

	InsecureTLS bool        // accept any certificate
	TLS         *tls.Config // how TLS is spoken, but for ServerName and NextProtos; nil for Go's defaults
	// exchange keys by ML-KEM, too, where TLS has no CurvePreferences of its own. It costs a handshake 0.25 ms of CPU and
	// 1.2 KB, and protects what is recorded today from quantum computers to come.
	PostQuantumTLS bool
	LegacyTLS      bool // accept TLS 1.0 and 1.1, RSA key exchange and other suites that browsers have given up, too

	ConnectTimeout time.Duration // for a name lookup, and again for dialling with the TLS handshake; default 10 s
	Timeout        time.Duration // for the answer's head, and between two reads of its body; default 30 s
	MaxTime        time.Duration // for the whole exchange, the wait for a connection included; default 10 × Timeout
	MaxBody        int64         // bytes of an answer's body, as transferred; default 32 MiB
	MaxHeader      int64         // bytes of an answer's head, interim answers included; default 256 KiB

	PerHost int // connections to a host; 0 for no limit
	// idle connections kept, all hosts together; default a quarter of the files that may be open, at most 16,384
	MaxIdle int
	Sockets int // connections open at once, idle ones among them; 0 for no limit
	Lookups int // names looked up at once, each with up to two sockets; 0 for no limit
	// names looked up a second, each by a question or two; those that are known cost nothing. 0 for no limit
	LookupRate float64

	// bytes of answers under way that are held in memory, all together, beyond 32 KiB of each; default 64 MiB
	Memory  int64
	Scratch *vfs.Scratch // where what is beyond lies; default a temporary file

	AllowPrivate bool     // dial private addresses too
	OnlyPublic   bool     // not even of a seed's host: the user has not named it
	Resolve      []string // HOST:PORT:ADDR[,ADDR] as curl has it; HOST and PORT may be *
	DNSServer    string   // host:port of a recursive name server; "" for the system's resolver
	Resolver     Resolver // looks names up in place of both; nil for them
	Bandwidth    int64    // bytes per second that all connections together receive; 0 for no limit

	Now func() time.Time // default time.Now
}

// LongestExchange is how long an exchange may take in all.
func (cfg Config) LongestExchange() time.Duration { return cfg.withDefaults().MaxTime }

// maxLength keeps sums of limits within an int.
const maxLength = math.MaxInt / 4

const (
	accept         = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	acceptEncoding = "gzip, deflate, br, zstd"
	idleTimeout    = 90 * time.Second
	defaultFiles   = 1024 // where the system does not say how many may be open
)

func (cfg Config) withDefaults() Config {
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, 10*time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.MaxTime = cmp.Or(cfg.MaxTime, 10*cfg.Timeout)
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 32<<20), maxLength)
	cfg.MaxHeader = min(cmp.Or(cfg.MaxHeader, 256<<10), maxLength)
	cfg.Memory = max(cmp.Or(cfg.Memory, 64<<20), 4*min(cfg.MaxHeader, 1<<20)) // a head must fit
	cfg.MaxIdle = cmp.Or(cfg.MaxIdle, min(files()/4, 1<<14))
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "kumo")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// headers builds the fields sent to everyone and those sent to trusted hosts.
func (cfg Config) headers() (public, trusted http.Header) {
	public = http.Header{"User-Agent": {cfg.UserAgent}, "Accept": {accept}, "Accept-Encoding": {acceptEncoding}}
	secrets := make(http.Header)
	if cfg.User != "" {
		secrets.Set("Authorization", basicAuth(cfg.User, cfg.Password))
	}
	for name, values := range cfg.Header {
		name = http.CanonicalHeaderKey(name)
		if name == cookieField {
			continue // it goes into one with the others
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

// CheckField reports why a header field cannot be in [Config.Header]: an error that names what there is in its place.
func CheckField(name, value string) error {
	lower := strings.ToLower(name)
	switch {
	case !validName(name) || strings.Contains(name, " "):
		return fmt.Errorf("%q is no field name", name)
	case !sendable(value):
		return fmt.Errorf("the value of %s has a control character", name)
	case lower == "host":
		return errors.New("the field follows from each URL; --resolve HOST:PORT:ADDR sends the requests for a host to " +
			"another address")
	case lower == "proxy-authorization":
		return errors.New("user and password for a proxy belong into --proxy")
	case lower == "content-length" || lower == "expect" || lower == "trailer":
		return errors.New("the field speaks of a request's body, and requests have none")
	case notOverHTTP2[lower] || lower == "te" || lower == "http2-settings":
		return errors.New("the field speaks of the connection, which is for kumo to manage")
	}
	return nil
}

// CheckFields reports why header fields cannot be sent, as CheckField does.
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

// IsSecret reports whether a header field's name says that its value is a secret.
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
