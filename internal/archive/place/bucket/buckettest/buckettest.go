// Package buckettest runs object stores for tests. It provides S3 in this process and by a real server (versitygw),
// Google Cloud Storage in this process, and a proxy that injects faults.
package buckettest

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Bucket is the name of the servers' bucket.
const Bucket = "kumo-test"

// The credentials that servers accept.
const (
	Key    = "kumotest"
	Secret = "hunter2hunter2"
)

// Environment returns environment variables with the credentials that prevent a process from finding others. nowhere is
// a file that does not exist.
func Environment(nowhere string) map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": Key, "AWS_SECRET_ACCESS_KEY": Secret, "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_CONFIG_FILE": nowhere,
		"AWS_SHARED_CREDENTIALS_FILE": nowhere, "AWS_EC2_METADATA_DISABLED": "true"}
}

// Credentials sets this environment for the current process.
func Credentials(t testing.TB) {
	for name, value := range Environment(filepath.Join(t.TempDir(), "none")) {
		t.Setenv(name, value)
	}
}

// Options returns the URL options for a bucket on a server.
func Options(endpoint string) string {
	return "use_path_style=true&region=us-east-1&endpoint=" + url.QueryEscape(endpoint)
}

// URL returns the URL of a prefix on a server.
func URL(endpoint, prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?" + Options(endpoint)
}

// NewFake starts a server in this process.
func NewFake() (*httptest.Server, error) {
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		return nil, err
	}
	return serve(gofakes3.New(backend).Server()), nil
}

// serve starts a server that logs nothing.
func serve(h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.Start()
	return s
}

// Fake starts a server in this process, and returns its endpoint.
func Fake(t testing.TB) string {
	Credentials(t)
	s, err := NewFake()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.URL
}

// Gateway starts versitygw, a real server, over a folder, and returns its endpoint. Without versitygw the test is
// skipped.
func Gateway(t testing.TB) string { return NewServer(t, t.TempDir()).Endpoint }

// A Server is a versitygw server that can be killed and restarted.
type Server struct {
	Endpoint string
	// Dir has the bucket's objects as files.
	Dir string

	t       testing.TB
	args    []string
	running *exec.Cmd // nil: not running
}

// NewServer starts versitygw over a folder. Without versitygw the test is skipped.
func NewServer(t testing.TB, dir string) *Server {
	if _, err := exec.LookPath("versitygw"); err != nil {
		t.Skip("SKIPPED: versitygw is not in PATH: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
	}
	Credentials(t)
	s := &Server{t: t, Dir: filepath.Join(dir, Bucket)}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // release the port for the server
	s.Endpoint = "http://" + address
	// Metadata is stored in files, because not every file system supports extended attributes.
	s.args = []string{"--quiet", "--keep-alive", "--port", address, "--access", Key, "--secret", Secret, "posix",
		"--sidecar", t.TempDir(), dir}
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// Start starts the server after Kill, and waits until it responds.
func (s *Server) Start() {
	s.t.Helper()
	cmd := exec.Command("versitygw", s.args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.running = cmd
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint, "http://"))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Since(begin) > 20*time.Second {
			s.t.Fatalf("versitygw does not start: %v", err)
		}
	}
}

// Kill kills the server. It would not exit on request while connections are open.
func (s *Server) Kill() {
	if s.running == nil {
		return
	}
	_ = s.running.Process.Kill()
	_ = s.running.Wait()
	s.running = nil
}

// Faults is a proxy in front of a server that injects faults, determined by a seed.
type Faults struct {
	// Endpoint is the address of the proxy.
	Endpoint string

	mu   sync.Mutex // guards the fields below
	rng  *rand.Rand
	rate map[Fault]float64
	seen map[Fault]int
	all  int
	sent int64 // bytes of request bodies
}

// A Fault is a kind of fault.
type Fault string

// The faults. Lost cuts off a response after the server has processed the request.
const (
	Busy    Fault = "503"
	Cut     Fault = "cut"     // cuts a request in its body
	Lost    Fault = "lost"    // drops a whole response
	Short   Fault = "short"   // cuts a response in its body
	Changed Fault = "changed" // changes a byte of a request's body
	Wrong   Fault = "wrong"   // changes a byte of a response's body
	Slow    Fault = "slow"    // sends a request's body in small pieces
)

// Proxy starts a proxy without faults.
func Proxy(t testing.TB, endpoint string, seed uint64) *Faults {
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &Faults{rng: rand.New(rand.NewPCG(seed, 0)), seen: map[Fault]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the host is signed
	}, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), FlushInterval: -1}
	s := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &counted{r.Body, f}
		switch f.roll() {
		case Busy:
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>")
			return
		case Cut:
			_, _ = io.CopyN(io.Discard, r.Body, f.below(r.ContentLength))
			panic(http.ErrAbortHandler)
		case Lost:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case Short:
			proxy.ServeHTTP(&shortened{ResponseWriter: w, left: f.below(100_000)}, r)
			return
		case Wrong:
			proxy.ServeHTTP(&wrong{w}, r)
			return
		case Changed:
			if r.ContentLength > 0 {
				r.Body = &changed{ReadCloser: r.Body, at: f.below(r.ContentLength)}
			}
		case Slow:
			r.Body = &slow{r.Body}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	f.Endpoint = s.URL
	return f
}

// Set sets the fraction of requests that fail with each fault.
func (f *Faults) Set(rate map[Fault]float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate = rate
}

// Sent returns the number of bytes in request bodies.
func (f *Faults) Sent() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// Seen returns the number of requests for each fault, and in total.
func (f *Faults) Seen() (map[Fault]int, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen, f.all
}

func (f *Faults) roll() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all++
	x := f.rng.Float64()
	for _, fault := range []Fault{Busy, Cut, Lost, Short, Changed, Wrong, Slow} {
		if x -= f.rate[fault]; x < 0 {
			f.seen[fault]++
			return fault
		}
	}
	return ""
}

func (f *Faults) below(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.Int64N(max(n, 1))
}

type counted struct {
	io.ReadCloser
	f *Faults
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.f.mu.Lock()
	c.f.sent += int64(n)
	c.f.mu.Unlock()
	return n, err
}

type shortened struct {
	http.ResponseWriter
	left int64
}

func (s *shortened) Write(b []byte) (int, error) {
	if int64(len(b)) <= s.left {
		s.left -= int64(len(b))
		return s.ResponseWriter.Write(b)
	}
	_, _ = s.ResponseWriter.Write(b[:s.left])
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

type wrong struct{ http.ResponseWriter }

func (w *wrong) Write(b []byte) (int, error) {
	b = slices.Clone(b)
	b[len(b)/2] ^= 1
	return w.ResponseWriter.Write(b)
}

type changed struct {
	io.ReadCloser
	at int64
}

func (c *changed) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if c.at >= 0 && c.at < int64(n) {
		b[c.at] ^= 1
	}
	c.at -= int64(n)
	return n, err
}

type slow struct{ io.ReadCloser }

func (s *slow) Read(b []byte) (int, error) {
	time.Sleep(5 * time.Millisecond)
	return s.ReadCloser.Read(b[:min(len(b), 1000)])
}
