//go:build gcs

package bucket

import (
	"context"
	"net/url"

	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"

	"kumo/internal/advice"
)

var moreSchemes = []string{gcsblob.Scheme}

// openOther opens a bucket of Google's, with its default credentials.
func openOther(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	bare := &url.URL{Scheme: u.Scheme, Host: u.Host, RawQuery: u.RawQuery}
	b, err := blob.OpenBucket(ctx, bare.String())
	if err != nil {
		return nil, advice.With(err, "run gcloud auth application-default login, or name a key file by "+
			"GOOGLE_APPLICATION_CREDENTIALS")
	}
	return b, nil
}
