package fetch

import (
	"cmp"
	"encoding/base64"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Config says how to fetch. Its zero value works.
type Config struct {
	UserAgent string
	Header    http.Header // further fields; those with a secret's name are sent to trusted hosts only
	User      string      // for Basic authentication, sent to trusted hosts only; "" for none
	Password  string
	Cookies   *Cookies // sent to trusted hosts only; nil for none
	Proxy     *url.URL // http, https or socks5, with user and password if it asks for them; nil for none

	InsecureTLS bool // accept any certificate

	ConnectTimeout time.Duration // for a name lookup, and again for dialling with the TLS handshake; default 10 s
	Timeout        time.Duration // for the answer's head, and between two reads of its body; default 30 s
	MaxTime        time.Duration // for the whole exchange, the wait for a connection included; default 10 × Timeout
	MaxBody        int64         // bytes of an answer's body, as transferred; default 32 MiB
	MaxHeader      int64         // bytes of an answer's head, interim answers included; default 256 KiB

	PerHost int // connections to a host; 0 for no limit
	MaxIdle int // idle connections kept, all hosts together; default a quarter of the files that may be open, at most 16,384

	AllowPrivate bool     // dial private addresses too
	Resolve      []string // HOST:PORT:ADDR[,ADDR] as curl has it; HOST and PORT may be *
	DNSServer    string   // host:port of a recursive name server; "" for the system's resolver
	Bandwidth    int64    // bytes per second that all connections together receive; 0 for no limit

	Now func() time.Time // default time.Now
}

// maxLength keeps sums of limits within an int.
const maxLength = math.MaxInt / 4

const (
	accept         = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	acceptEncoding = "gzip, deflate, br, zstd"
	idleTimeout    = 90 * time.Second
	fewFiles       = 1024 // where the system does not say how many may be open
)

func (cfg Config) withDefaults() Config {
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, 10*time.Second)
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.MaxTime = cmp.Or(cfg.MaxTime, 10*cfg.Timeout)
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 32<<20), maxLength)
	cfg.MaxHeader = min(cmp.Or(cfg.MaxHeader, 256<<10), maxLength)
	cfg.MaxIdle = cmp.Or(cfg.MaxIdle, min(files()/4, 1<<14))
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "kumo")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// headers builds the fields sent to everyone and those sent to trusted hosts. They are shared by all requests: net/http does not
// write to a request's header.
func (cfg Config) headers() (public, trusted http.Header) {
	public = http.Header{"User-Agent": {cfg.UserAgent}, "Accept": {accept}, "Accept-Encoding": {acceptEncoding}}
	secrets := make(http.Header)
	if cfg.User != "" {
		secrets.Set("Authorization", basicAuth(cfg.User, cfg.Password))
	}
	for name, values := range cfg.Header {
		name = http.CanonicalHeaderKey(name)
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

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// IsSecret reports whether a header field's name says that its value is a secret.
func IsSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"auth", "cookie", "token", "secret", "key", "passw", "session", "credential", "signature", "jwt"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
