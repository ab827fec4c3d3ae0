package hdfs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/colinmarc/hdfs/v2"
	krb "github.com/jcmturner/gokrb5/v8/client"

	"kumo/internal/archive/place"
	"kumo/internal/content/hadoopconf"
)

const (
	dialTimeout = 10 * time.Second
	idleTimeout = time.Minute // limit for a server that does not respond or accept data
)

// A connection has the current client. The library's client is unusable after a lost or late response, so it is then
// replaced.
type connection struct {
	options hdfs.ClientOptions
	login   func() (*krb.Client, error) // nil without Kerberos

	mu     sync.Mutex // guards the fields below
	client *hdfs.Client
	closed bool
}

func newConnection(addresses []string, user string, conf hadoopconf.Conf) (*connection, error) {
	c := &connection{options: hdfs.ClientOptionsFromConf(settings(conf))}
	c.options.Addresses, c.options.User = addresses, user
	c.options.NamenodeDialFunc, c.options.DatanodeDialFunc = dial, dial
	c.options.KerberosClient = nil
	if conf.Secure() {
		c.login = login
		if c.options.KerberosServicePrincipleName == "" {
			return nil, errors.New("the cluster requires Kerberos, and hdfs-site.xml has no " +
				"dfs.namenode.kerberos.principal")
		}
	}
	return c, nil
}

// settings returns the properties that the library uses, without addresses.
func settings(conf hadoopconf.Conf) map[string]string {
	s := map[string]string{}
	for _, name := range []string{"dfs.client.use.datanode.hostname", "dfs.namenode.kerberos.principal",
		"dfs.data.transfer.protection",
		"dfs.encrypt.data.transfer"} {
		s[name] = conf.Get(name)
	}
	return s
}

// get returns the current client, connected.
func (c *connection) get(ctx context.Context) (*hdfs.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.closed {
		return nil, fs.ErrClosed
	}
	if c.client == nil {
		client, err := c.make()
		if err != nil {
			return nil, err
		}
		c.client = client
	}
	return c.client, nil
}

// make connects. It also triggers lookups that the library caches without a lock.
func (c *connection) make() (*hdfs.Client, error) {
	options := c.options
	if c.login != nil {
		ticket, err := c.login()
		if err != nil {
			return nil, err
		}
		options.KerberosClient = ticket
	}
	client, err := hdfs.NewClient(options)
	if err != nil {
		return nil, err
	}
	if _, err := client.ServerDefaults(); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// drop closes a client if it is the current one, so that get makes another.
func (c *connection) drop(client *hdfs.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.client = nil
		_ = client.Close() // it is unusable
	}
}

func (c *connection) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.client == nil {
		return nil
	}
	client := c.client
	c.client = nil
	return client.Close()
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &deadlineConn{conn}, nil
}

// deadlineConn is a connection with a time limit for each call. The library sets no deadlines.
type deadlineConn struct{ net.Conn }

func (t *deadlineConn) Read(b []byte) (int, error) {
	if err := t.SetReadDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return t.Conn.Read(b)
}

func (t *deadlineConn) Write(b []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// SetDeadline does nothing, so that the library does not override the deadlines of Read and Write.
func (*deadlineConn) SetDeadline(time.Time) error { return nil }

// do calls the NameNode, and retries while it is unreachable: it may restart, or another one may take over.
func (p *Place) do(ctx context.Context, ask func(*hdfs.Client) error) error {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		client, err := p.conn.get(ctx)
		if err == nil {
			if err = ask(client); err == nil || isReply(err) {
				return err
			}
			p.conn.drop(client)
		}
		if ctx.Err() != nil || errors.Is(err, fs.ErrClosed) {
			return err
		}
		if time.Since(begin)+pause > p.outage {
			return unreachable(p.conn.options.Addresses, err)
		}
		if err := place.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// isReply reports whether an error is the NameNode's final reply, and not a request to retry.
func isReply(err error) bool {
	if remote, is := errors.AsType[remoteError](err); is {
		switch remote.Exception() {
		case "org.apache.hadoop.ipc.RetriableException", "org.apache.hadoop.ipc.StandbyException":
			return false
		}
		return true
	}
	return slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, syscall.ENOTEMPTY},
		func(is error) bool { return errors.Is(err, is) })
}
