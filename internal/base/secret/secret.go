// Package secret implements the shared secret of a cluster, and derives keys and TLS certificates from it.
//
// A secret is 256 random bits, with a text form that users copy from node to node. Every holder of the secret belongs
// to the cluster. No other credentials have to be distributed or renewed.
package secret

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

const (
	size    = 32 // bytes of a secret
	sumSize = 3  // bytes of checksum in the text form; with them it has 56 letters and no padding
)

// ErrChecksum reports a text that is not a complete secret or has a wrong checksum. The secret of another cluster has a
// valid checksum, so it is accepted here.
var ErrChecksum = errors.New("the secret is not complete, or has a typing mistake: its checksum does not fit")

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// A Secret is shared by the nodes of a cluster. The zero value means that there is no secret.
type Secret struct{ key [size]byte }

// New returns a random secret.
func New() Secret {
	var s Secret
	rand.Read(s.key[:]) // never fails
	return s
}

// Parse parses the output of Text. Spaces, dashes and case do not matter. An empty text yields the zero Secret.
func Parse(text string) (Secret, error) {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -\t\r\n", r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	if text == "" {
		return Secret{}, nil
	}
	data, err := letters.DecodeString(text)
	if err != nil || len(data) != size+sumSize || !bytes.Equal(data[size:], sum(data[:size])) {
		return Secret{}, ErrChecksum
	}
	return Secret{[size]byte(data[:size])}, nil
}

// Text returns the form of the secret that users copy: 56 letters and digits.
func (s Secret) Text() string { return letters.EncodeToString(append(s.key[:], sum(s.key[:])...)) }

// String returns a placeholder, so that logs cannot leak the secret.
func (s Secret) String() string { return "(a secret)" }

// Format prints the placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Derive derives n bytes for a purpose. They reveal neither the secret nor the bytes for other purposes.
func (s Secret) Derive(purpose string, n int) ([]byte, error) {
	return hkdf.Key(sha256.New, s.key[:], nil, "kumo "+purpose, n)
}

func sum(key []byte) []byte {
	h := sha256.Sum256(append([]byte("kumo secret "), key...))
	return h[:sumSize]
}
