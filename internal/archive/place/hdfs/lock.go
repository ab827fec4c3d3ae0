package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"kumo/internal/archive/place"
)

// Lock acquires HDFS's lease of the file ".NAME.lock" by opening it for appending. One client holds the lease while it
// renews it. The lease of a dead client expires after a minute.
func (p *Place) Lock(ctx context.Context, name string) (func() error, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	dir, base := path.Split(full)
	full = path.Join(dir, "."+base+".lock")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The lease belongs to its client, so the lock has a client that is independent of the current one.
	client, err := p.conn.make()
	if err != nil {
		return nil, unreachable(p.conn.options.Addresses, err)
	}
	f, err := lease(ctx, client, full)
	if err != nil {
		return nil, p.explain(ctx, "lock", full, errors.Join(err, client.Close()))
	}
	return func() error { return errors.Join(f.Close(), client.Close()) }, nil
}

func lease(ctx context.Context, client *hdfs.Client, name string) (*hdfs.FileWriter, error) {
	if err := client.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	if err := client.CreateEmptyFile(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for try := 1; ; try++ {
		f, err := client.Append(name)
		if err == nil {
			return f, nil
		}
		remote, is := errors.AsType[remoteError](err)
		if !is {
			return nil, err
		}
		// an expired lease is being recovered
		recovers := strings.HasSuffix(remote.Exception(), ".RecoveryInProgressException")
		switch {
		case recovers && try < 20:
			if err := place.Sleep(ctx, 500*time.Millisecond); err != nil {
				return nil, err
			}
		case recovers || strings.HasSuffix(remote.Exception(), ".AlreadyBeingCreatedException"):
			return nil, fmt.Errorf("%w%s; HDFS releases the lock of a dead process after a minute", place.ErrLocked,
				owner(remote.Message()))
		default:
			return nil, err
		}
	}
}

// owner returns the host of a lease's holder, if the NameNode's message has it.
func owner(message string) string {
	_, after, _ := strings.Cut(firstLine(message), "owned by ")
	if _, address, has := strings.Cut(after, " on "); has {
		return " on " + strings.TrimRight(address, ".")
	}
	return ""
}
