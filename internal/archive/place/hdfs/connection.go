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
	idleTimeout = time.Minute // of a server that owes an answer, or takes nothing, until its connection is given up
)

// A connection is the client of the moment. The library's client is no good any more once an answer was lost or came
// too late, so it is given up then, and another one made.
type connection struct {
	options hdfs.ClientOptions
	login   func() (*krb.Client, error) // nil without Kerberos

	mu     sync.Mutex // guards what follows
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
			return nil, errors.New("the cluster asks for Kerberos, and hdfs-site.xml does not say " +
				"dfs.namenode.kerberos.principal")
		}
	}
	return c, nil
}

// settings are those properties that the library looks at, the addresses left out.
func settings(conf hadoopconf.Conf) map[string]string {
	s := map[string]string{}
	for _, name := range []string{"dfs.client.use.datanode.hostname", "dfs.namenode.kerberos.principal",
		"dfs.data.transfer.protection",
		"dfs.encrypt.data.transfer"} {
		s[name] = conf.Get(name)
	}
	return s
}

// get returns the client of the moment, connected.
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

// make connects. What the library fetches once, and notes without a lock, is fetched here.
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

// drop gives a client up, if it still is the one of the moment.
func (c *connection) drop(client *hdfs.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == client {
		c.client = nil
		_ = client.Close() // it is broken
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

// deadlineConn is a connection each of whose calls must come to something in time. The library sets no deadlines.
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

func (*deadlineConn) SetDeadline(time.Time) error { return nil } // the library's are none

// do asks the NameNode, again where it could not be asked: it starts anew, or another one takes over.
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

// isReply reports whether an error is the NameNode's answer, and not one that asks to come again.
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
