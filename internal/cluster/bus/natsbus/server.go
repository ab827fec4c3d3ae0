package natsbus

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"kumo/internal/cluster/bus"
)

// maxPayload is bus.MaxData with room for NATS's overhead.
const maxPayload = 2 * bus.MaxData

// startServer starts this process's server, and returns when it listens.
func startServer(ctx context.Context, cfg Config) (*server.Server, error) {
	opts, err := cfg.serverOptions()
	if err != nil {
		return nil, err
	}
	if err := cfg.portsFree(ctx, opts); err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("create the server on %s: %w", cfg.Listen, err)
	}
	trouble := &logger{log: cfg.Log, fatal: make(chan string, 1)}
	s.SetLogger(trouble, false, false)
	go s.Start() // returns at once; Shutdown ends the goroutines that it starts
	for !s.ReadyForConnections(100 * time.Millisecond) {
		select {
		case why := <-trouble.fatal:
			s.Shutdown()
			return nil, fmt.Errorf("start the server on %s: %s", cfg.Listen, why)
		case <-ctx.Done():
			s.Shutdown()
			return nil, fmt.Errorf("start the server on %s: %w", cfg.Listen, ctx.Err())
		default:
		}
	}
	return s, nil
}

func (c *Config) serverOptions() (*server.Options, error) {
	host, port, err := splitAddress(c.Listen)
	if err != nil {
		return nil, err
	}
	user, password, err := c.login()
	if err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName: serverName(c.owner(), c.Listen),
		Host:       host, Port: port, ClientAdvertise: c.Listen,
		Username: user, Password: password,
		MaxPayload: maxPayload, MaxPending: 64 << 20,
		JetStream: true, StoreDir: c.Dir, SyncAlways: true,
		NoSigs: true, DisableJetStreamBanner: true,
		ConnectErrorReports: 1 << 20, ReconnectErrorReports: 1 << 20, // makeStreams reports servers that do not answer
		PingInterval: c.Timings.Ping, MaxPingsOut: 2,
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		opts.ClientAdvertise = ""
	}
	if len(c.Servers) > 1 {
		if err := c.clusterOptions(opts, host, port); err != nil {
			return nil, err
		}
	}
	if c.Secret.IsZero() {
		return opts, nil
	}
	tls, _, err := c.Secret.TLS()
	if err != nil {
		return nil, err
	}
	opts.TLSConfig, opts.TLSHandshakeFirst, opts.TLSVerify, opts.TLSTimeout = tls, true, true, 5
	if len(c.Servers) > 1 {
		opts.Cluster.TLSConfig, opts.Cluster.TLSTimeout = tls.Clone(), 5
	}
	return opts, nil
}

// clusterOptions configures a server as one of several. Servers connect to each other on the port after the nodes'
// port.
func (c *Config) clusterOptions(opts *server.Options, host string, port int) error {
	user, password, err := c.login()
	if err != nil {
		return err
	}
	opts.Cluster = server.ClusterOpts{
		Name: clusterName(c.owner()), Host: host, Port: port + 1,
		Username: user, Password: password, PoolSize: -1, // one connection between two servers is enough
		PingInterval: c.Timings.Ping, MaxPingsOut: 2,
	}
	for _, address := range c.Servers {
		host, port, err := splitAddress(address)
		if err != nil {
			return err
		}
		if address != c.Listen {
			route := net.JoinHostPort(host, strconv.Itoa(port+1))
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: route,
				User: url.UserPassword(user, password)})
		}
	}
	return nil
}

// login returns the name and password of all nodes of a crawl, or of shared servers. Nodes of another crawl cannot log
// in, even with the same secret.
func (c *Config) login() (user, password string, err error) {
	key, err := c.Secret.Derive("login "+c.owner(), 16)
	return "kumo-" + c.owner(), hex.EncodeToString(key), err
}

// Server and cluster names carry the crawl's name.
func serverName(crawl, address string) string { return clusterName(crawl) + "@" + address }
func clusterName(crawl string) string         { return "kumo:" + crawl }

// portsFree returns an error if the server cannot listen on its ports.
func (c *Config) portsFree(ctx context.Context, opts *server.Options) error {
	ports := []int{opts.Port}
	if opts.Cluster.Port != 0 {
		ports = append(ports, opts.Cluster.Port)
	}
	for _, port := range ports {
		address := net.JoinHostPort(opts.Host, strconv.Itoa(port))
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return c.portTaken(ctx, fmt.Errorf("listen on %s: %w", address, err))
		}
		l.Close()
	}
	return nil
}

// A logger passes on a server's errors.
type logger struct {
	log   func(string)
	fatal chan string
}

var _ server.Logger = (*logger)(nil)

func (l *logger) Noticef(string, ...any)    {}
func (l *logger) Warnf(string, ...any)      {}
func (l *logger) Debugf(string, ...any)     {}
func (l *logger) Tracef(string, ...any)     {}
func (l *logger) Errorf(f string, v ...any) { l.logf("server: "+f, v...) }

// Fatalf is called by a server that has to stop.
func (l *logger) Fatalf(f string, v ...any) {
	l.logf("server: "+f, v...)
	select {
	case l.fatal <- fmt.Sprintf(f, v...):
	default:
	}
}

func (l *logger) logf(f string, v ...any) {
	if l.log != nil {
		l.log(fmt.Sprintf(f, v...))
	}
}
