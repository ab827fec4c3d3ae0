// Package hdfs stores files in a folder of the Hadoop Distributed File System, using HDFS's native protocol.
//
// A file is buffered in a local temporary file until it is closed. It is then written to HDFS under a hidden name in
// the same folder and renamed. The client library does not survive the death of a DataNode; with the local copy, the
// write is just started again. A slow writer, such as a fetcher, also keeps no pipeline of DataNodes open.
package hdfs

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
	"kumo/internal/content/hadoopconf"
)

// A Config configures access to HDFS. The zero value is for a file system in the URL, without Kerberos.
type Config struct {
	Conf hadoopconf.Conf
	User string // owner of written files; "": hadoopconf.User. Not used with Kerberos
	// Spool is the folder for files until they are closed; "": the system's.
	Spool string
	// Patience is how long the write of a file is retried while DataNodes fail. 0 is 12 minutes, because the NameNode
	// takes ten and a half minutes to detect a dead one.
	Patience time.Duration
}

const (
	defaultPatience = 12 * time.Minute
	defaultOutage   = 90 * time.Second // of the NameNode before it is an error; another takes over within
	promptTimeout   = 5 * time.Second  // limit for both with FailFast
	firstPause      = 200 * time.Millisecond
	longestPause    = 10 * time.Second
)

// A Place is a folder of HDFS. Close it when it is no longer used.
type Place struct {
	authority string
	root      string // path in HDFS
	user      string
	conn      *connection
	spool     *vfs.Scratch
	patience  time.Duration
	outage    time.Duration
}

var (
	_ place.Place      = (*Place)(nil)
	_ place.Locker     = (*Place)(nil)
	_ place.FastFailer = (*Place)(nil)
	_ place.Prober     = (*Place)(nil)
)

// Open connects to the file system of a URL, hdfs://HOST[:PORT]/FOLDER, hdfs://SERVICE/FOLDER, or hdfs:///FOLDER for
// the default one of the configuration. The folder need not exist.
func Open(ctx context.Context, rawURL string, cfg Config) (*Place, error) {
	p, err := Make(rawURL, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.Probe(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Probe connects once.
func (p *Place) Probe(ctx context.Context) error {
	if _, err := p.conn.get(ctx); err != nil {
		return unreachable(p.conn.options.Addresses, err)
	}
	return nil
}

// Make is like Open, but does not connect.
func Make(rawURL string, cfg Config) (*Place, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "hdfs" {
		return nil, &fs.PathError{Op: "open", Path: rawURL, Err: errors.New("not an hdfs:// URL")}
	}
	addresses, err := cfg.Conf.NameNodes(u.Host)
	if err != nil {
		return nil, err
	}
	p := &Place{authority: u.Host, root: path.Clean("/" + u.Path), user: cfg.User, patience: cfg.Patience,
		outage: defaultOutage}
	if p.authority == "" {
		fsURL, _ := url.Parse(cfg.Conf.Get("fs.defaultFS")) // NameNodes has parsed it already
		p.authority = fsURL.Host
	}
	if p.user == "" {
		p.user = hadoopconf.User()
	}
	if p.patience == 0 {
		p.patience = defaultPatience
	}
	if p.conn, err = newConnection(addresses, p.user, cfg.Conf); err != nil {
		return nil, err
	}
	p.spool = vfs.NewScratch(cfg.Spool, nil, 0)
	return p, nil
}

// FailFast returns the same location with short retries.
func (p *Place) FailFast() place.Place {
	prompt := *p
	prompt.patience, prompt.outage = min(p.patience, promptTimeout), promptTimeout
	return &prompt
}

// Close closes the connection.
func (p *Place) Close() error { return errors.Join(p.conn.close(), p.spool.Close()) }

// URL returns the folder's URL.
func (p *Place) URL() string {
	return (&url.URL{Scheme: "hdfs", Host: p.authority, Path: p.root}).String()
}

// FileURL returns the URL of a file or folder in Hadoop's form.
func (p *Place) FileURL(name string) (string, error) {
	full, err := p.path(name)
	return "hdfs://" + p.authority + full, err
}

// User returns the owner of written files.
func (p *Place) User() string { return p.user }

// path returns the HDFS path of a name. HDFS does not support colons, so they are escaped.
func (p *Place) path(name string) (string, error) {
	if err := place.ValidName(name); err != nil {
		return "", err
	}
	return path.Join(p.root, escape.Replace(name)), nil
}

var (
	escape   = strings.NewReplacer("%", "%25", ":", "%3A")
	unescape = strings.NewReplacer("%25", "%", "%3A", ":")
)

// List lists a folder.
func (p *Place) List(ctx context.Context, dir string) (all []place.Info, err error) {
	full := p.root
	if dir != "" {
		if full, err = p.path(dir); err != nil {
			return nil, err
		}
	}
	err = p.do(ctx, func(client *hdfs.Client) error {
		all = nil
		f, err := client.Open(full)
		if err != nil || !f.Stat().IsDir() {
			return err
		}
		found, err := f.Readdir(0)
		for _, info := range found {
			if !strings.HasPrefix(info.Name(), ".") {
				all = append(all, infoOf(info))
			}
		}
		return err
	})
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, p.explain(ctx, "list", full, err)
	}
	slices.SortFunc(all, func(a, b place.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func infoOf(info fs.FileInfo) place.Info {
	i := place.InfoOf(info)
	i.Name = unescape.Replace(i.Name)
	return i
}

// Stat describes a file or folder.
func (p *Place) Stat(ctx context.Context, name string) (info place.Info, err error) {
	full, err := p.path(name)
	if err != nil {
		return place.Info{}, err
	}
	err = p.do(ctx, func(client *hdfs.Client) error {
		found, err := client.Stat(full)
		if err == nil {
			info = infoOf(found)
		}
		return err
	})
	return info, p.explain(ctx, "stat", full, err)
}

// Rename renames a file, or a folder to a name that does not exist.
func (p *Place) Rename(ctx context.Context, from, to string) error {
	old, err := p.path(from)
	if err != nil {
		return err
	}
	name, err := p.path(to)
	if err != nil {
		return err
	}
	if _, err := p.Stat(ctx, from); err != nil {
		return err
	}
	return p.explain(ctx, "rename", old, p.rename(ctx, old, name))
}

// rename renames an existing file. If a response was lost, the second try finds nothing left to rename.
func (p *Place) rename(ctx context.Context, from, to string) error {
	first := true
	return p.do(ctx, func(client *hdfs.Client) error {
		if err := client.MkdirAll(path.Dir(to), 0o755); err != nil {
			return err
		}
		err := client.Rename(from, to)
		if !first && errors.Is(err, fs.ErrNotExist) {
			_, err = client.Stat(to)
		}
		first = false
		return err
	})
}

// Remove removes a file or a folder, without using HDFS's trash.
func (p *Place) Remove(ctx context.Context, name string) error {
	full, err := p.path(name)
	if err != nil {
		return err
	}
	return p.explain(ctx, "remove", full, p.remove(ctx, full))
}

func (p *Place) remove(ctx context.Context, full string) error {
	return p.do(ctx, func(client *hdfs.Client) error {
		if err := client.RemoveAll(full); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Room returns the total and the free bytes of the file system, without regard to replication.
func (p *Place) Room(ctx context.Context) (total, left uint64, err error) {
	err = p.do(ctx, func(client *hdfs.Client) error {
		stat, err := client.StatFs()
		total, left = stat.Capacity, stat.Remaining
		return err
	})
	return total, left, p.explain(ctx, "look at", p.root, err)
}
