package natsbus

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
)

// Errors of an address. An error message consists of the address and one of these.
var (
	ErrNoAnswer      = errors.New("does not answer")
	ErrSecret        = errors.New("answers but does not accept this cluster's secret")
	ErrNoSecret      = errors.New("answers without encryption: it was started without a secret, and this node has one")
	ErrWantsSecret   = errors.New("answers but wants a secret, and this node has none")
	ErrOtherCrawl    = errors.New("belongs to another crawl's cluster")
	ErrShared        = errors.New("serves several crawls, and this node one")
	ErrNotKumo       = errors.New("answers but is not a server of a kumo cluster")
	ErrServers       = errors.New("the cluster was made with other servers")
	ErrNotOwnServers = errors.New("kumo does not manage its servers")
	ErrNoNodes       = errors.New("has no data of this crawl, and no node of all crawls has used it yet")
	ErrNoJetStream   = errors.New("has no JetStream, which kumo needs: set jetstream in its configuration")
)

// probeTime is the timeout for an address to answer.
const probeTime = 3 * time.Second

// An AddressError is an error of one address.
type AddressError struct {
	Address string
	Err     error
}

func (e *AddressError) Error() string { return e.Address + " " + e.Err.Error() }
func (e *AddressError) Unwrap() error { return e.Err }

// probeAll probes the given addresses concurrently, except for this process's own. It returns a permanent error of one
// of them, or the addresses that do not answer.
func (c *Config) probeAll(ctx context.Context, addresses []string) (away []*AddressError, wrong error) {
	var wg sync.WaitGroup
	found := make([]error, len(addresses))
	for i, address := range addresses {
		if address != c.Listen || !c.runsServer() {
			wg.Go(func() { found[i] = c.probe(ctx, address) })
		}
	}
	wg.Wait()
	for _, err := range found {
		at, is := errors.AsType[*AddressError](err)
		switch {
		case err == nil:
		case !errors.Is(err, ErrNoAnswer) || !is:
			return nil, permanentError{err}
		default:
			away = append(away, at)
		}
	}
	return away, nil
}

// probe returns the error of an address, an *AddressError; nil if it is a server of this crawl.
func (c *Config) probe(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := dial(ctx, address)
	if err != nil {
		return &AddressError{address, &noAnswer{err}}
	}
	defer conn.Close()
	if c.Secret.IsZero() {
		err = c.probePlain(ctx, conn, address)
	} else {
		err = c.probeTLS(ctx, conn)
	}
	if err != nil {
		return &AddressError{address, err}
	}
	return nil
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		conn.SetDeadline(end)
	}
	return conn, nil
}

func (c *Config) probeTLS(ctx context.Context, conn net.Conn) error {
	_, config, err := c.Secret.TLS()
	if err != nil {
		return err
	}
	secured := tls.Client(conn, config)
	err = secured.HandshakeContext(ctx)
	var unknown *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return ErrSecret
	case errors.As(err, &plain) && strings.HasPrefix(string(plain.RecordHeader[:]), "INFO"):
		return ErrNoSecret
	case errors.As(err, &plain):
		return ErrNotKumo
	case err != nil:
		return &noAnswer{err}
	}
	return c.probeInfo(secured)
}

// probePlain reads the greeting. A server that sends none may be waiting for a TLS handshake.
func (c *Config) probePlain(ctx context.Context, conn net.Conn, address string) error {
	conn.SetReadDeadline(time.Now().Add(probeTime / 3))
	err := c.probeInfo(conn)
	if !errors.Is(err, ErrNoAnswer) {
		return err
	}
	again, dialing := dial(ctx, address)
	if dialing != nil {
		return err
	}
	defer again.Close()
	shown := false
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "kumo"}
	config.InsecureSkipVerify = true // nothing is sent: this only checks whether the server has a certificate
	config.VerifyConnection = func(tls.ConnectionState) error { shown = true; return errors.New("enough") }
	_ = tls.Client(again, config).HandshakeContext(ctx)
	if shown {
		return ErrWantsSecret
	}
	return err
}

// probeInfo reads the greeting of a NATS server and compares the crawl's name.
func (c *Config) probeInfo(conn net.Conn) error {
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil && line == "" {
		return &noAnswer{err}
	}
	text, ok := strings.CutPrefix(line, "INFO ")
	var info struct {
		Name string `json:"server_name"`
	}
	if !ok || json.Unmarshal([]byte(text), &info) != nil {
		return ErrNotKumo
	}
	crawl, ok := strings.CutPrefix(info.Name, clusterName(""))
	if !ok {
		return ErrNotKumo
	}
	switch crawl, _, _ = strings.Cut(crawl, "@"); {
	case crawl == c.owner():
	case crawl == sharedName:
		return ErrShared
	case c.Shared:
		return fmt.Errorf("%w: it serves only %q", ErrOtherCrawl, crawl)
	default:
		return fmt.Errorf("%w: it is %q, not %q", ErrOtherCrawl, crawl, c.Crawl)
	}
	return nil
}

// portTaken probes the server that uses this process's address, and adds the result to err.
func (c *Config) portTaken(ctx context.Context, err error) error {
	found := c.probe(ctx, c.Listen)
	switch {
	case found == nil:
		return fmt.Errorf("%s is taken by a server of this crawl: is this node already running? %w", c.Listen, err)
	case errors.Is(found, ErrNoAnswer):
		return err
	}
	return fmt.Errorf("%s is taken: %w: %w", c.Listen, found, err)
}

// checkPayload returns an error if a server does not accept messages of MaxData bytes.
func checkPayload(url string, has int64) error {
	if has >= bus.MaxData+64<<10 {
		return nil
	}
	return permanentError{
		fmt.Errorf("%s accepts messages of at most %d bytes, kumo needs %d: set max_payload in its configuration",
			url, has, maxPayload),
	}
}
