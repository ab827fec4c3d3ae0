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

// A Config says how HDFS is reached. The zero value is one for a file system that the URL names, without Kerberos.
type Config struct {
	Conf hadoopconf.Conf
	User string // that owns what is written; "" for hadoopconf.User. Kerberos has its own
	// Spool is the folder for what is written and not yet closed; "" for the system's.
	Spool string
	// Patience is how long a file is written again and again while DataNodes fail: 12 minutes if 0, as it takes the
	// NameNode ten and a half to notice that one is dead.
	Patience time.Duration
}

const (
	defaultPatience = 12 * time.Minute
	defaultOutage   = 90 * time.Second // of the NameNode, until it is an error: another takes over within
	promptTimeout   = 5 * time.Second  // until either is an error to who tries again
	firstPause      = 200 * time.Millisecond
	longestPause    = 10 * time.Second
)

// A Place is a folder of HDFS. It is closed when nobody uses it any more.
type Place struct {
	authority string
	root      string // a path of HDFS
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

// Open connects to the file system of an URL, hdfs://HOST[:PORT]/FOLDER, hdfs://SERVICE/FOLDER or hdfs:///FOLDER for
// the one that the configuration names. The folder need not be there.
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

// Probe connects, once.
func (p *Place) Probe(ctx context.Context) error {
	if _, err := p.conn.get(ctx); err != nil {
		return unreachable(p.conn.options.Addresses, err)
	}
	return nil
}

// Make is Open without connecting.
func Make(rawURL string, cfg Config) (*Place, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "hdfs" {
		return nil, &fs.PathError{Op: "open", Path: rawURL, Err: errors.New("it is no hdfs:// URL")}
	}
	addresses, err := cfg.Conf.NameNodes(u.Host)
	if err != nil {
		return nil, err
	}
	p := &Place{authority: u.Host, root: path.Clean("/" + u.Path), user: cfg.User, patience: cfg.Patience,
		outage: defaultOutage}
	if p.authority == "" {
		fsURL, _ := url.Parse(cfg.Conf.Get("fs.defaultFS")) // NameNodes has parsed it
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

// FailFast is the place with little patience.
func (p *Place) FailFast() place.Place {
	prompt := *p
	prompt.patience, prompt.outage = min(p.patience, promptTimeout), promptTimeout
	return &prompt
}

// Close ends the connection.
func (p *Place) Close() error { return errors.Join(p.conn.close(), p.spool.Close()) }

// URL is the folder's URL.
func (p *Place) URL() string {
	return (&url.URL{Scheme: "hdfs", Host: p.authority, Path: p.root}).String()
}

// FileURL is the URL of a file or folder, as Hadoop has it.
func (p *Place) FileURL(name string) (string, error) {
	full, err := p.path(name)
	return "hdfs://" + p.authority + full, err
}

// User is who owns what is written.
func (p *Place) User() string { return p.user }

// path is where HDFS has a name. It takes no colons, so these are escaped.
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

// Stat says what a name stands for.
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

// Rename renames a file, or a folder to a name that nothing has.
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

// rename renames what is there. Where an answer was lost the second time finds nothing left to rename.
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

// Remove removes a file or a folder; it does not go to HDFS's trash.
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

// Room is how many bytes the file system has in all, and how many are left, copies not taken into account.
func (p *Place) Room(ctx context.Context) (total, left uint64, err error) {
	err = p.do(ctx, func(client *hdfs.Client) error {
		stat, err := client.StatFs()
		total, left = stat.Capacity, stat.Remaining
		return err
	})
	return total, left, p.explain(ctx, "look at", p.root, err)
}
