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
	idleTimeout  = 2 * time.Minute // limit for a connection without progress during a request
	tries        = 8               // per request: about a minute if responses arrive at once
	promptTries  = 3               // per request if a user waits, or the caller retries
	longestPause = 20 * time.Second
)

// An s3Client accesses a bucket with the S3 protocol.
type s3Client struct {
	*s3.Client
	bucket     string
	encryption types.ServerSideEncryption
	kmsKey     *string
	checksums  bool  // sent with uploads; a few servers do not support them
	part       int64 // bytes of an upload's part, unless there would be too many
	copyLimit  int64 // bytes that one request can copy
}

var _ store = (*s3Client)(nil)

const (
	partSize  = 16 << 20
	maxParts  = 10_000  // of an upload
	copyLimit = 5 << 30 // limit of S3
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
		// For multipart objects, servers return a checksum that is not the whole file's, and not all of them mark it as
		// such. The reader checks the file's own digest instead.
		s.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})...)
	return &s3Client{Client: client, bucket: u.Host, encryption: o.encryption, kmsKey: o.kmsKey, part: partSize,
		copyLimit: copyLimit, checksums: cfg.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired}, nil
}

// failFast returns the same bucket with fewer tries per request.
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

// badOption returns the error for a URL's options, without the prefix of AWS's client.
func badOption(u *url.URL, err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return advice.Usage("place s3://%s%s: %w; options are region, endpoint, use_path_style, profile, anonymous and "+
		"others: see docs/reference/storage.md", u.Host, u.Path, err)
}

// retryer retries temporary errors: servers that are down or busy, and corrupted transfers.
func retryer(tries int, longest time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = tries, longest, ratelimit.None
		o.Retryables = append(o.Retryables, retry.RetryableErrorCode{Codes: map[string]struct{}{
			"BadDigest": {}, "InvalidDigest": {}, "XAmzContentSHA256Mismatch": {}, "IncompleteBody": {},
			"OperationAborted": {},
		}})
	})
}

// httpClient returns a client whose connections are closed after a time without progress.
func httpClient() aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(setIdleTimeout)
}

// setIdleTimeout makes a transport close connections without progress.
func setIdleTimeout(t *http.Transport) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &idleConn{conn}, nil
	}
	t.IdleConnTimeout = idleTimeout / 2 // unused connections are closed before they time out
}

// idleConn is a connection whose reads and writes fail after a time without progress.
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

// code returns the S3 error code of an error.
func code(err error) string {
	if said, is := errors.AsType[smithy.APIError](err); is {
		return said.ErrorCode()
	}
	return ""
}

func (c *s3Client) source(key string) *string {
	parts := strings.Split(c.bucket+"/"+key, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(part), "+", "%2B") // some servers decode + as a space
	}
	return aws.String(strings.Join(parts, "/"))
}

// copy copies an object on the server, with its metadata.
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

// copyParts copies an object that is too long for one request.
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

// abortBelow aborts the uploads of a file, or of files in a folder.
func (c *s3Client) abortBelow(ctx context.Context, key string) error {
	return c.uploads(ctx, key, func(u types.MultipartUpload) {
		if name := aws.ToString(u.Key); name == key || strings.HasPrefix(name, key+"/") {
			c.abort(ctx, name, aws.ToString(u.UploadId))
		}
	})
}

// uploads calls f with the unfinished uploads whose keys begin with a prefix, if the server lists them.
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

// abort aborts an upload, even if the context has ended. What remains after a failure is left to the store's lifecycle
// rules.
func (c *s3Client) abort(ctx context.Context, key, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	_, _ = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &c.bucket, Key: &key, UploadId: &id})
}
