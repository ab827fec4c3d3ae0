package hdfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"kumo/internal/archive/place"
)

var _ place.Uploader = (*Place)(nil)

// Upload writes a local file. A file that exists already, by size and digest, is not written again. An interrupted
// upload starts over, because HDFS's client cannot continue it.
func (p *Place) Upload(ctx context.Context, name string, src io.ReaderAt, size int64, sum [sha256.Size]byte) error {
	full, err := p.path(name)
	if err != nil {
		return err
	}
	digest := hex.EncodeToString(sum[:])
	if info, err := p.Stat(ctx, name); err == nil && !info.IsDir && info.Size == size {
		if kept, err := p.digest(ctx, full); err == nil && kept == digest {
			return nil
		}
	}
	return p.explain(ctx, "upload", full, p.store(ctx, full, content{src, size, &sum}))
}

// attributes are stored with a file, as JSON in an extended attribute.
type attributes struct {
	Digest string `json:"sha256,omitempty"`
}

const attributesKey = "user.kumo"

// setDigest stores a file's digest in its attributes, if the cluster supports extended attributes.
func (p *Place) setDigest(ctx context.Context, full, digest string) error {
	data, err := json.Marshal(attributes{digest})
	if err != nil {
		return err
	}
	err = p.do(ctx, func(client *hdfs.Client) error { return client.SetXAttr(full, attributesKey, string(data)) })
	if noAttributes(err) {
		return nil
	}
	return err
}

// digest returns the digest in a file's attributes; "" if there is none.
func (p *Place) digest(ctx context.Context, full string) (string, error) {
	var text string
	err := p.do(ctx, func(client *hdfs.Client) error {
		all, err := client.ListXAttrs(full)
		text = all[attributesKey]
		return err
	})
	if err != nil || text == "" {
		return "", err
	}
	var a attributes
	err = json.Unmarshal([]byte(text), &a)
	return a.Digest, err
}

func noAttributes(err error) bool {
	remote, is := errors.AsType[remoteError](err)
	return is && strings.Contains(remote.Message(), "xattr operation has been rejected")
}
