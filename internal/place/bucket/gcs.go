//go:build gcs

package bucket

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"kumo/internal/advice"
)

var moreSchemes = []string{gcsblob.Scheme}

// openOther opens a bucket of Google's, with its default credentials; without any where the URL says so, or Google's
// own variable for a server that stands in for theirs.
func openOther(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	anonymous, opts, err := gcsOptions(u)
	if err != nil {
		return nil, err
	}
	if anonymous || os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		return openGCS(ctx, gcp.NewAnonymousHTTPClient(gcp.DefaultTransport()), u.Host, opts)
	}
	credentials, err := gcp.DefaultCredentials(ctx)
	if err != nil {
		return nil, advice.With(err, "run gcloud auth application-default login, name a key file by "+
			"GOOGLE_APPLICATION_CREDENTIALS, or say ?anonymous=true for a bucket that all may read")
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), gcp.CredentialsTokenSource(credentials))
	if err != nil {
		return nil, err
	}
	return openGCS(ctx, client, u.Host, opts)
}

// otherStatus is the status of an answer of Google's; 0 if there was none.
func otherStatus(err error) int {
	if answer, is := errors.AsType[*googleapi.Error](err); is {
		return answer.Code
	}
	return 0
}

// gcsTries are of a request, which would have no end otherwise: some ten seconds, if its answers come at once.
const gcsTries = 5

func openGCS(ctx context.Context, client *gcp.HTTPClient, name string, opts *gcsblob.Options) (*blob.Bucket, error) {
	b, err := gcsblob.OpenBucket(ctx, client, name, opts)
	if err != nil {
		return nil, err
	}
	var c *storage.Client
	if b.As(&c) {
		c.SetRetry(storage.WithMaxAttempts(gcsTries))
	}
	return b, nil
}

// gcsOptions are those of a gs:// URL.
func gcsOptions(u *url.URL) (anonymous bool, opts *gcsblob.Options, err error) {
	opts = &gcsblob.Options{}
	for name, values := range u.Query() {
		value := values[len(values)-1]
		switch name {
		case "anonymous":
			if anonymous, err = strconv.ParseBool(value); err != nil {
				return false, nil, badGCS(u, "anonymous is true or false")
			}
		case "endpoint":
			at, err := url.Parse(value)
			if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
				return false, nil, badGCS(u, "endpoint is a server, as https://HOST:PORT")
			}
			opts.ClientOptions = append(opts.ClientOptions, option.WithEndpoint(strings.TrimRight(value, "/")+"/storage/v1/"))
		default:
			return false, nil, badGCS(u, "there is no option "+name+": options are anonymous and endpoint")
		}
	}
	return anonymous, opts, nil
}

func badGCS(u *url.URL, what string) error {
	return advice.Usage("place %s://%s%s: %s", u.Scheme, u.Host, u.Path, what)
}
