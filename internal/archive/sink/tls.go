package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"os"

	"kumo/internal/base/advice"
)

// caKey is the parameter of a URL that names a file of certificates.
const caKey = "ca"

// TLS is how a sink's server is trusted: by the machine's own certificates of authorities, or those of the file that
// ?ca= names, in PEM. It takes the parameter out of the URL's query. It is nil without TLS.
func TLS(at *url.URL, is bool) (*tls.Config, error) {
	query := at.Query()
	file := query.Get(caKey)
	switch {
	case !query.Has(caKey):
		if is {
			return &tls.Config{}, nil
		}
		return nil, nil
	case !is:
		return nil, advice.Usage("%s: ?ca= is for TLS: say %s+https, or kafka+tls", RedactURL(at), at.Scheme)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, advice.Usage("%s: ?ca=: %w", RedactURL(at), err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(data) {
		return nil, advice.Usage("%s: ?ca=: %s has no certificate in PEM", RedactURL(at), file)
	}
	return &tls.Config{RootCAs: trusted}, nil
}

// QueryWithoutTLS is a URL's query without what TLS reads.
func QueryWithoutTLS(at *url.URL) url.Values {
	query := at.Query()
	query.Del(caKey)
	return query
}

// TLSAdvice says what to do about an error of TLS: "" if it is none.
func TLSAdvice(err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case unknown:
		return "name a file with the certificates of the authority that has signed the server's: ?ca=FILE"
	case name:
		return "reach the server by a name that is in its certificate"
	case invalid:
		return "let the server have a certificate that is valid, and set this machine's clock"
	case record, errors.Is(err, http.ErrSchemeMismatch):
		return "the server speaks no TLS there: leave out what stands behind the + in the URL, or name another port"
	case alert:
		return "the server does not agree to this kind of TLS: see its log"
	}
	return ""
}

type permanentError struct{ error }

func (l *permanentError) Unwrap() error { return l.error }

// Permanent marks an error that is not over when the same is done again, whatever it is made of.
func Permanent(err error) error { return &permanentError{err} }
