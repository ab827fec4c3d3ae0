//go:build !gcs

package bucket

import (
	"context"
	"net/url"

	"gocloud.dev/blob"
)

// moreSchemes are those that a build tag adds: what Google's client takes doubles the binary.
var moreSchemes []string

func otherStatus(error) int { return 0 }

func openOther(context.Context, *url.URL) (*blob.Bucket, error) {
	panic("bucket: there is no other scheme")
}
