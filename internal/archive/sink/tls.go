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

// caKey is the URL parameter with a file of certificates.
const caKey = "ca"

// TLS returns the TLS configuration of a sink's URL; nil without TLS. It trusts the machine's certificate authorities,
// or those of the PEM file ?ca=, and removes this parameter from the URL.
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
		return nil, advice.Usage("%s: ?ca= requires TLS: use %s+https or kafka+tls", RedactURL(at), at.Scheme)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, advice.Usage("%s: ?ca=: %w", RedactURL(at), err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(data) {
		return nil, advice.Usage("%s: ?ca=: %s has no PEM certificate", RedactURL(at), file)
	}
	return &tls.Config{RootCAs: trusted}, nil
}

// QueryWithoutTLS returns a URL's query without the parameters of TLS.
func QueryWithoutTLS(at *url.URL) url.Values {
	query := at.Query()
	query.Del(caKey)
	return query
}

// TLSAdvice returns how to fix an error of TLS; "" for other errors.
func TLSAdvice(err error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	switch {
	case unknown:
		return "set ?ca=FILE to the certificates of the authority that signed the server's"
	case name:
		return "use a host name that is in the server's certificate"
	case invalid:
		return "install a valid certificate on the server, and set this machine's clock"
	case record, errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not use TLS there: remove the + and what follows from the scheme, or use another port"
	case alert:
		return "the server rejects this kind of TLS: see its log"
	}
	return ""
}

type permanentError struct{ error }

func (l *permanentError) Unwrap() error { return l.error }

// Permanent marks an error as permanent: a retry fails again, whatever the error wraps.
func Permanent(err error) error { return &permanentError{err} }
