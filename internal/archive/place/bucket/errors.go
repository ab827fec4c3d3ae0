package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"golang.org/x/oauth2"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
)

// explain adds to an error of a store what it means and how to fix it.
func (p *Place) explain(what, name string, err error) error {
	if err == nil {
		return nil
	}
	said := p.inWords(what+" "+strings.TrimSuffix(p.URL()+"/"+name, "/"), err)
	if isTransient(err) {
		return place.Transient(said)
	}
	return said
}

func (p *Place) inWords(where string, err error) error {
	said, isAPI := errors.AsType[smithy.APIError](err)
	if isAPI {
		switch said.ErrorCode() {
		case "NoSuchBucket":
			return noBucket(where, "correct the name, set its endpoint= or region=, or create it: aws s3 mb "+p.name)
		case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
			"InvalidClientTokenId", "XAdminUserNotFound":
			return advice.With(fmt.Errorf("%s: the store rejects the credentials: %s: %w", where, message(said),
				fs.ErrPermission), "check that AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the "+
				"profile in ~/.aws/credentials, are valid and belong to this endpoint")
		case "RequestTimeTooSkewed":
			return advice.With(fmt.Errorf("%s: %s", where, message(said)), "set this machine's clock")
		case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
			return advice.With(fmt.Errorf("%s: the bucket is in another region: %s", where, message(said)),
				"set its region: ?region=...")
		case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage":
			return advice.With(&shortError{where + ": the store is full: " + message(said), syscall.ENOSPC},
				"free some space there")
		case "EntityTooLarge":
			return fmt.Errorf("%s: the store does not accept files of this size: %s", where, message(said))
		}
	}
	if google, is := errors.AsType[*gcsError](err); is && google.isBucket() {
		return noBucket(where, "correct the name, or create it: gcloud storage buckets create "+p.name)
	}
	status := status(err)
	inner, isNet := netError(err)
	var missing *aws.MissingRegionError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && status == 0 && !isNet:
		return fmt.Errorf("%s: %w", where, err)
	case isNotFound(err):
		return fmt.Errorf("%s: %w", where, fs.ErrNotExist)
	case isAPI && strings.Contains(said.ErrorCode(), "AccessDenied"), status == http.StatusForbidden:
		return advice.With(fmt.Errorf("%s: access denied: %s: %w", where, shortMessage(err), fs.ErrPermission),
			"these credentials need permission to list the bucket, and to read, write and remove objects below "+p.URL()+
				" (docs/reference/storage.md)")
	case isGoogles(err) && !isTransient(err):
		return advice.With(fmt.Errorf("%s: the store rejects the credentials: %s: %w", where, shortMessage(err),
			fs.ErrPermission), gcsCredentials)
	case errors.As(err, &missing):
		return advice.With(fmt.Errorf("%s: %w", where, err), "set the bucket's region: ?region=...")
	case noCredentials(err) && !isTransient(err):
		return advice.With(fmt.Errorf("%s: no credentials found", where),
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, select a profile of ~/.aws/credentials with ?profile= or "+
				"AWS_PROFILE, or use ?anonymous=true for a public bucket")
	case status == http.StatusInsufficientStorage:
		return advice.With(fmt.Errorf("%s: the store is full: %w", where, syscall.ENOSPC), "free some space there")
	case status == http.StatusMovedPermanently, status == http.StatusTemporaryRedirect:
		return advice.With(fmt.Errorf("%s: wrong region or endpoint of the bucket", where),
			"set its region, ?region=..., or its server, ?endpoint=https://...")
	case isNet:
		return advice.With(fmt.Errorf("%s: cannot reach the store: %w", where, inner),
			"check endpoint= and that its server runs")
	}
	return fmt.Errorf("%s: %w", where, &shortError{shortMessage(err), err})
}

func noBucket(where, how string) error {
	return advice.With(&shortError{where + ": the bucket does not exist", fs.ErrNotExist}, how)
}

// isNotFound reports whether an error means that an object or bucket does not exist.
func isNotFound(err error) bool {
	switch code(err) {
	case "NoSuchBucket", "NoSuchKey", "NotFound":
		return true
	case "":
		return status(err) == http.StatusNotFound
	}
	return false
}

// status returns the HTTP status of an error response; 0 if there was none.
func status(err error) int {
	if answer, is := errors.AsType[*awshttp.ResponseError](err); is {
		return answer.HTTPStatusCode()
	}
	if answer, is := errors.AsType[*gcsError](err); is {
		return answer.status
	}
	if answer, is := errors.AsType[*oauth2.RetrieveError](err); is && answer.Response != nil {
		return answer.Response.StatusCode
	}
	return 0
}

// isGoogles reports whether an error is about Google's credentials.
func isGoogles(err error) bool {
	if answer, is := errors.AsType[*gcsError](err); is {
		return answer.status == http.StatusUnauthorized
	}
	_, is := errors.AsType[*oauth2.RetrieveError](err)
	return is
}

// isTransient reports whether an error may be temporary: the store is unreachable or busy. Errors about the request
// itself, such as its certificate, are not.
func isTransient(err error) bool {
	status, code := status(err), code(err)
	switch {
	case noCredentials(err) && strings.Contains(err.Error(), "ec2imds"): // this machine has no instance role
		return false
	case strings.HasPrefix(code, "Throttl"), code == "SlowDown", code == "RequestTimeout", code == "OperationAborted",
		status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return true
	case status >= 500:
		return status != http.StatusNotImplemented && status != http.StatusHTTPVersionNotSupported
	case status >= 100:
		return false
	}
	return isUnreachable(err)
}

// isUnreachable reports whether an error means that a server is unreachable or does not respond.
func isUnreachable(err error) bool {
	if op, is := errors.AsType[*net.OpError](err); is {
		_, isAddr := errors.AsType[*net.AddrError](op)
		_, isParse := errors.AsType[*net.ParseError](op)
		return !isAddr && !isParse && op.Op != "remote error" // error of TLS
	}
	if _, is := errors.AsType[*net.DNSError](err); is {
		return true
	}
	timeout, is := errors.AsType[net.Error](err)
	return is && timeout.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// A shortError is an error with a shorter text.
type shortError struct {
	text string
	err  error
}

func (b *shortError) Error() string { return b.text }
func (b *shortError) Unwrap() error { return b.err }

// message returns the server's description of an error.
func message(said smithy.APIError) string {
	if said.ErrorMessage() == "" {
		return said.ErrorCode()
	}
	return firstLine(said.ErrorCode() + ": " + said.ErrorMessage())
}

// shortMessage returns an error's text without the number of tries and the request ID.
func shortMessage(err error) string {
	if said, is := errors.AsType[smithy.APIError](err); is {
		return message(said)
	}
	if google, is := errors.AsType[*gcsError](err); is {
		return firstLine(google.Error())
	}
	if status := status(err); status != 0 {
		return statusText(status)
	}
	return firstLine(err.Error())
}

func statusText(status int) string {
	return fmt.Sprintf("status %d %s", status, http.StatusText(status))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s[:min(len(s), 500)]
}

func noCredentials(err error) bool {
	text := err.Error()
	return strings.Contains(text, "get credentials: ") || strings.Contains(text, "failed to refresh cached credentials") ||
		strings.Contains(text, "failed to retrieve credentials")
}

// netError returns the network error that an error wraps, if there is one.
func netError(err error) (inner error, is bool) {
	if op, is := errors.AsType[*net.OpError](err); is {
		return op, true
	}
	if dns, is := errors.AsType[*net.DNSError](err); is {
		return dns, true
	}
	if u, is := errors.AsType[*url.Error](err); is {
		return u.Err, true
	}
	return err, false
}
