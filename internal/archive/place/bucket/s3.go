package bucket

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"kumo/internal/base/advice"
)

const (
	dialTimeout  = 10 * time.Second
	idleTimeout  = 2 * time.Minute // of a connection on which something is under way, until it is given up
	tries        = 8               // of a request: about a minute, if its answers come at once
	promptTries  = 3               // of one for which somebody waits, or who asked tries again
	longestPause = 20 * time.Second
)

// An s3Client is a bucket that is reached by S3's protocol.
type s3Client struct {
	*s3.Client
	bucket     string
	encryption types.ServerSideEncryption
	kmsKey     *string
	checksums  bool  // sent with what is uploaded; a few servers know none
	part       int64 // bytes of an upload's part, unless the file has too many of these
	copyLimit  int64 // bytes that one request may copy
}

var _ store = (*s3Client)(nil)

const (
	partSize  = 16 << 20
	maxParts  = 10_000  // of an upload
	copyLimit = 5 << 30 // S3's
)

func openS3(ctx context.Context, u *url.URL) (store, error) {
	o, err := s3Options(u.Query())
	if err != nil {
		return nil, badOption(u, err)
	}
	cfg, err := awsConfig(ctx, o)
	if err != nil {
		return nil, badOption(u, err)
	}
	client := s3.NewFromConfig(cfg, append(o.s3, func(s *s3.Options) {
		s.Retryer, s.HTTPClient = retryer(tries, longestPause), httpClient()
		// Of a file in parts, servers return a checksum that is not the whole file's, and not all say so: the reader checks
		// the file's own.
		s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})...)
	return &s3Client{Client: client, bucket: u.Host, encryption: o.encryption, kmsKey: o.kmsKey, part: partSize,
		copyLimit: copyLimit, checksums: cfg.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired}, nil
}

// failFast is the same bucket with few tries of each request.
func (c *s3Client) failFast() store {
	options, few := c.Options(), *c
	options.Retryer = retryer(promptTries, time.Second)
	few.Client = s3.New(options)
	return &few
}

func (c *s3Client) close() error { return nil }

func (c *s3Client) head(ctx context.Context, key string) (object, error) {
	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: &key})
	if err != nil {
		return object{}, err
	}
	return object{key: key, size: aws.ToInt64(head.ContentLength), modified: aws.ToTime(head.LastModified),
		metadata: head.Metadata}, nil
}

func (c *s3Client) get(ctx context.Context, key string, offset, length int64, version string) (*content, error) {
	in := &s3.GetObjectInput{Bucket: &c.bucket, Key: &key}
	if span := byteRange(offset, length); span != "" {
		in.Range = &span
	}
	if version != "" {
		in.IfMatch = &version
	}
	out, err := c.GetObject(ctx, in)
	if err != nil {
		return nil, err
	}
	got := &content{ReadCloser: out.Body, size: wholeSize(aws.ToInt64(out.ContentLength), aws.ToString(out.ContentRange)),
		modified: aws.ToTime(out.LastModified), version: aws.ToString(out.ETag)}
	if want := out.Metadata[digestKey]; want != "" {
		got.digest, got.want = sha256.New(), want
	}
	return got, nil
}

func (c *s3Client) list(ctx context.Context, prefix, delimiter, token string, limit int) (page []object, next string,
	err error) {
	in := &s3.ListObjectsV2Input{Bucket: &c.bucket, MaxKeys: aws.Int32(int32(limit)), Prefix: optional(prefix),
		Delimiter: optional(delimiter), ContinuationToken: optional(token)}
	out, err := c.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, "", err
	}
	for _, o := range out.Contents {
		page = append(page, object{key: aws.ToString(o.Key), size: aws.ToInt64(o.Size),
			modified: aws.ToTime(o.LastModified)})
	}
	for _, folder := range out.CommonPrefixes {
		page = append(page, object{key: aws.ToString(folder.Prefix), isDir: true})
	}
	return page, aws.ToString(out.NextContinuationToken), nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// badOption is the error of a URL's options, without what AWS's client puts before it.
func badOption(u *url.URL, err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return advice.Usage("place s3://%s%s: %w; options are region, endpoint, use_path_style, profile, anonymous and the "+
		"like: see docs/reference/storage.md", u.Host, u.Path, err)
}

// retryer tries again what may come to another end: servers that are down or busy, and bytes that the way has changed.
func retryer(tries int, longest time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = tries, longest, ratelimit.None
		o.Retryables = append(o.Retryables, retry.RetryableErrorCode{Codes: map[string]struct{}{
			"BadDigest": {}, "InvalidDigest": {}, "XAmzContentSHA256Mismatch": {}, "IncompleteBody": {},
			"OperationAborted": {},
		}})
	})
}

// httpClient has connections that are given up when nothing moves on them.
func httpClient() aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(setIdleTimeout)
}

// setIdleTimeout makes a transport give up connections on which nothing moves.
func setIdleTimeout(t *http.Transport) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &idleConn{conn}, nil
	}
	t.IdleConnTimeout = idleTimeout / 2 // an idle connection is not a silent one
}

// idleConn is a connection that comes to an end when nothing was sent or received for a while.
type idleConn struct{ net.Conn }

func (t *idleConn) Read(b []byte) (int, error) {
	if err := t.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return t.Conn.Read(b)
}

func (t *idleConn) Write(b []byte) (int, error) {
	if err := t.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// code is what S3 calls an error.
func code(err error) string {
	if said, is := errors.AsType[smithy.APIError](err); is {
		return said.ErrorCode()
	}
	return ""
}

func (c *s3Client) source(key string) *string {
	parts := strings.Split(c.bucket+"/"+key, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(part), "+", "%2B") // which some take for a space
	}
	return aws.String(strings.Join(parts, "/"))
}

// copy copies an object on the server, with what is known of it.
func (c *s3Client) copy(ctx context.Context, to, from string) error {
	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: &from})
	if err != nil {
		return err
	}
	if size := aws.ToInt64(head.ContentLength); size > c.copyLimit {
		return c.copyParts(ctx, to, from, head)
	}
	_, err = c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: &c.bucket, Key: &to, CopySource: c.source(from),
		ServerSideEncryption: c.encryption, SSEKMSKeyId: c.kmsKey})
	return err
}

// copyParts copies what is too long for one request.
func (c *s3Client) copyParts(ctx context.Context, to, from string, head *s3.HeadObjectOutput) error {
	made, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &c.bucket, Key: &to,
		ContentType: head.ContentType, Metadata: head.Metadata, ServerSideEncryption: c.encryption, SSEKMSKeyId: c.kmsKey})
	if err != nil {
		return err
	}
	size := aws.ToInt64(head.ContentLength)
	var parts []types.CompletedPart
	for at := int64(0); at < size && err == nil; at += c.copyLimit {
		number := aws.Int32(int32(len(parts) + 1))
		last := min(at+c.copyLimit, size) - 1
		var out *s3.UploadPartCopyOutput
		out, err = c.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: &c.bucket, Key: &to, UploadId: made.UploadId,
			PartNumber: number, CopySource: c.source(from), CopySourceRange: aws.String(byteRange(at, last+1-at)),
			CopySourceIfMatch: head.ETag})
		if err == nil {
			parts = append(parts, types.CompletedPart{ETag: out.CopyPartResult.ETag, PartNumber: number})
		}
	}
	if err == nil {
		_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &c.bucket, Key: &to,
			UploadId: made.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
	}
	if err != nil {
		c.abort(ctx, to, aws.ToString(made.UploadId))
	}
	return err
}

// removeAll removes objects in one request; it is no error if there are none.
func (c *s3Client) removeAll(ctx context.Context, keys []string) error {
	objects := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		objects[i].Key = &keys[i]
	}
	out, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &c.bucket,
		Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
	if err != nil {
		return err
	}
	for _, failed := range out.Errors {
		if aws.ToString(failed.Code) != "NoSuchKey" {
			return &smithy.GenericAPIError{Code: aws.ToString(failed.Code),
				Message: aws.ToString(failed.Key) + ": " + aws.ToString(failed.Message)}
		}
	}
	return nil
}

// abortBelow ends the uploads of a file, or of files in a folder.
func (c *s3Client) abortBelow(ctx context.Context, key string) error {
	return c.uploads(ctx, key, func(u types.MultipartUpload) {
		if name := aws.ToString(u.Key); name == key || strings.HasPrefix(name, key+"/") {
			c.abort(ctx, name, aws.ToString(u.UploadId))
		}
	})
}

// uploads calls f with the uploads whose keys begin with a prefix; with none where the server does not list them.
func (c *s3Client) uploads(ctx context.Context, prefix string, f func(types.MultipartUpload)) error {
	pages := s3.NewListMultipartUploadsPaginator(c.Client,
		&s3.ListMultipartUploadsInput{Bucket: &c.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if code(err) == "NotImplemented" || code(err) == "NoSuchUpload" {
			return nil
		}
		if err != nil {
			return err
		}
		for _, u := range page.Uploads {
			f(u)
		}
	}
	return nil
}

// abort ends an upload, also when the caller has been told to stop. What is left of it the store's own rules remove.
func (c *s3Client) abort(ctx context.Context, key, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	_, _ = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &c.bucket, Key: &key, UploadId: &id})
}
