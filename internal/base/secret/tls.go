package secret

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// serverName is the name in all certificates. It denotes the cluster, independent of the addresses of its nodes.
const serverName = "kumo-cluster"

// The validity is fixed. So the authority's certificate is the same on every node, and clocks do not matter.
var (
	notBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
)

// TLS returns the TLS settings of one process, for its servers and its clients. They require TLS 1.3 and certificates
// on both sides, signed by an authority that is derived from the secret. The process gets a new certificate on each
// call.
func (s Secret) TLS() (server, client *tls.Config, err error) {
	root, key, err := s.authority()
	if err != nil {
		return nil, nil, fmt.Errorf("make the cluster's authority: %w", err)
	}
	own, err := leaf(root, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	both := tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{own},
		RootCAs:      roots,
		ClientCAs:    roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ServerName:   serverName,
	}
	return both.Clone(), both.Clone(), nil
}

// authority derives the cluster's certificate authority. It is identical, to the byte, for every holder of the secret.
func (s Secret) authority() (*x509.Certificate, ed25519.PrivateKey, error) {
	seed, err := s.Derive("authority", ed25519.SeedSize)
	if err != nil {
		return nil, nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kumo cluster authority"},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	root, err := x509.ParseCertificate(der)
	return root, key, err
}

func leaf(root *x509.Certificate, by ed25519.PrivateKey) (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: serverName},
		DNSNames:     []string{serverName},
		NotBefore:    notBefore,
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root, public, by)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}
