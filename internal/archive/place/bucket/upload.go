package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/place"
)

const (
	contentType   = "application/octet-stream"
	digestKey     = "sha256" // metadata key of the digest, in hex
	parallelParts = 4        // parts of a file uploaded at the same time
)

var _ place.Uploader = (*Place)(nil)

// A file is a file to be uploaded.
type file struct {
	key  string
	data io.ReaderAt
	size int64
	sum  [sha256.Size]byte
}

func (f file) metadata() map[string]string {
	return map[string]string{digestKey: hex.EncodeToString(f.sum[:])}
}

// Upload uploads a file. On S3 it continues an interrupted upload without sending matching parts again. A file that
// exists already, by size and digest, is not sent.
func (p *Place) Upload(ctx context.Context, name string, src io.ReaderAt, size int64, sum [sha256.Size]byte) error {
	key, err := p.key(name)
	if err != nil {
		return err
	}
	return p.explain("upload", name, p.store.upload(ctx, file{key, src, size, sum}, true))
}

// copyAll copies length bytes, and fails if there are fewer or the context ends.
func copyAll(ctx context.Context, w io.Writer, src io.ReaderAt, at, length int64) error {
	n, err := io.Copy(w, place.NewContextReader(ctx, io.NewSectionReader(src, at, length)))
	if err == nil && n < length {
		err = fmt.Errorf("file ends at byte %d: %w", at+n, io.ErrUnexpectedEOF)
	}
	return err
}

// upload uploads a file, in parts if it is long. If goOn is set, it may continue the upload of another process.
func (c *s3Client) upload(ctx context.Context, f file, goOn bool) error {
	if f.size <= c.part {
		return c.put(ctx, f, goOn)
	}
	err := c.multipart(ctx, f, goOn)
	if code(err) == "NoSuchUpload" || code(err) == "InvalidPart" { // another process has completed or changed it
		if is, headErr := c.has(ctx, f); is || headErr != nil {
			return headErr // it was completed, and the response was lost
		}
		err = c.multipart(ctx, f, false)
	}
	return err
}

// has reports whether a file exists, by size and digest.
func (c *s3Client) has(ctx context.Context, f file) (bool, error) {
	head, err := c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &c.bucket, Key: &f.key})
	if code(err) == "NotFound" || code(err) == "NoSuchKey" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return aws.ToInt64(head.ContentLength) == f.size && head.Metadata[digestKey] == f.metadata()[digestKey], nil
}

// put uploads a file in one request.
func (c *s3Client) put(ctx context.Context, f file, goOn bool) error {
	if goOn {
		if is, err := c.has(ctx, f); is || err != nil {
			return err
		}
	}
	digest := sha256.New()
	if err := copyAll(ctx, digest, f.data, 0, f.size); err != nil {
		return err
	}
	if err := place.CheckDigest(digest, f.sum); err != nil {
		return err
	}
	in := &s3.PutObjectInput{Bucket: &c.bucket, Key: &f.key, Body: io.NewSectionReader(f.data, 0, f.size),
		ContentLength: &f.size, ContentType: aws.String(contentType), Metadata: f.metadata(),
		ServerSideEncryption: c.encryption, SSEKMSKeyId: c.kmsKey}
	if c.checksums {
		in.ChecksumSHA256 = inBase64(f.sum[:])
	}
	_, err := c.PutObject(ctx, in)
	return err
}

func inBase64(sum []byte) *string { return aws.String(base64.StdEncoding.EncodeToString(sum)) }

// multipart uploads a file in parts. After an error, uploaded parts are kept if goOn is set, so that the next call can
// continue.
func (c *s3Client) multipart(ctx context.Context, f file, goOn bool) error {
	var id string
	var have map[int32]types.Part
	if goOn {
		if is, err := c.has(ctx, f); is || err != nil {
			return err
		}
		var err error
		if id, have, err = c.unfinished(ctx, f.key); err != nil {
			return err
		}
	}
	resumed := id != ""
	if !resumed {
		in := &s3.CreateMultipartUploadInput{Bucket: &c.bucket, Key: &f.key, ContentType: aws.String(contentType),
			Metadata: f.metadata(), ServerSideEncryption: c.encryption, SSEKMSKeyId: c.kmsKey}
		if c.checksums {
			in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256
		}
		made, err := c.CreateMultipartUpload(ctx, in)
		if err != nil {
			return err
		}
		id = aws.ToString(made.UploadId)
	}
	parts, err := c.sendParts(ctx, f, id, have)
	if err == nil {
		_, err = c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &c.bucket, Key: &f.key,
			UploadId: &id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
	}
	if err != nil {
		if !goOn || errors.Is(err, place.ErrDigest) {
			c.abort(ctx, f.key, id)
		}
		return err
	}
	is, err := c.has(ctx, f)
	if err != nil || is {
		return err
	}
	if resumed { // the upload was started for a file with another digest
		return c.multipart(ctx, f, false)
	}
	return fmt.Errorf("the store has combined the parts to other content: %w", place.ErrDigest)
}

// unfinished returns the newest unfinished upload of a file, with its parts.
func (c *s3Client) unfinished(ctx context.Context, key string) (id string, have map[int32]types.Part, err error) {
	var last types.MultipartUpload
	err = c.uploads(ctx, key, func(u types.MultipartUpload) {
		if aws.ToString(u.Key) == key && (last.UploadId == nil || aws.ToTime(u.Initiated).After(aws.ToTime(last.Initiated))) {
			last = u
		}
	})
	if err != nil || last.UploadId == nil {
		return "", nil, err
	}
	have = map[int32]types.Part{}
	pages := s3.NewListPartsPaginator(c.Client,
		&s3.ListPartsInput{Bucket: &c.bucket, Key: &key, UploadId: last.UploadId})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if code(err) == "NoSuchUpload" {
			return "", nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		for _, part := range page.Parts {
			have[aws.ToInt32(part.PartNumber)] = part
		}
	}
	return *last.UploadId, have, nil
}

// sendParts reads the file once, and uploads the parts that the store does not have with the same digest.
func (c *s3Client) sendParts(ctx context.Context, f file, id string, have map[int32]types.Part) ([]types.CompletedPart,
	error) {
	step := max(c.part, (f.size/maxParts+1<<20)&^(1<<20-1))
	parts := make([]types.CompletedPart, (f.size+step-1)/step)
	all := sha256.New()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelParts)
	for i := range parts {
		at := int64(i) * step
		length := min(step, f.size-at)
		sum, err := digests(ctx, all, f.data, at, length)
		if err != nil {
			group.Go(func() error { return err })
			break
		}
		number := int32(i + 1)
		if old, has := have[number]; has && aws.ToInt64(old.Size) == length && aws.ToString(old.ChecksumSHA256) == *sum {
			parts[i] = types.CompletedPart{PartNumber: &number, ETag: old.ETag, ChecksumSHA256: old.ChecksumSHA256}
			continue
		}
		group.Go(func() error {
			in := &s3.UploadPartInput{Bucket: &c.bucket, Key: &f.key, UploadId: &id, PartNumber: &number,
				ContentLength: &length, Body: io.NewSectionReader(f.data, at, length)}
			if c.checksums {
				in.ChecksumSHA256 = sum
			}
			out, err := c.UploadPart(ctx, in)
			if err == nil {
				parts[i] = types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumSHA256: in.ChecksumSHA256}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return parts, place.CheckDigest(all, f.sum)
}

// digests returns the digest of a part, and adds the part to the digest of the whole file.
func digests(ctx context.Context, whole hash.Hash, src io.ReaderAt, at, length int64) (*string, error) {
	part := sha256.New()
	err := copyAll(ctx, io.MultiWriter(whole, part), src, at, length)
	return inBase64(part.Sum(nil)), err
}
