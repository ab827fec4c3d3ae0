//go:build gcs

package bucket

import (
	"context"
	"net/url"

	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"

	"kumo/internal/advice"
)

var moreSchemes = []string{gcsblob.Scheme}

// openOther opens a bucket of Google's, with its default credentials.
func openOther(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	if u.RawQuery != "" {
		return nil, advice.Usage("place %s://%s%s: such a URL has no options", u.Scheme, u.Host, u.Path)
	}
	credentials, err := gcp.DefaultCredentials(ctx)
	if err != nil {
		return nil, advice.With(err, "run gcloud auth application-default login, or name a key file by "+
			"GOOGLE_APPLICATION_CREDENTIALS")
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), gcp.CredentialsTokenSource(credentials))
	if err != nil {
		return nil, err
	}
	return gcsblob.OpenBucket(ctx, client, u.Host, nil)
}
