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
	sumSize = 3  // bytes of checksum in its text, which make it 56 letters without padding
)

// ErrChecksum is a text that was a secret once, or never: its checksum is wrong. A secret that belongs to another cluster
// is not told from the right one here.
var ErrChecksum = errors.New("the secret is not complete, or has a typing mistake: its checksum does not fit")

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// A Secret is shared by the nodes of a cluster. The zero value is none.
type Secret struct{ key [size]byte }

// New makes a secret.
func New() Secret {
	var s Secret
	rand.Read(s.key[:]) // it does not fail
	return s
}

// Parse reads what Text wrote. Spaces, dashes and the size of letters do not matter. The empty text is no secret, the
// zero value.
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

// Text is the secret as a person passes it on: 56 letters and digits.
func (s Secret) Text() string { return letters.EncodeToString(append(s.key[:], sum(s.key[:])...)) }

// String does not give the secret away, so that no log does.
func (s Secret) String() string { return "(a secret)" }

// Format does not give it away either, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// IsZero reports that there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Derive makes n bytes for a purpose, of which neither the secret follows nor what was made for another purpose.
func (s Secret) Derive(purpose string, n int) ([]byte, error) {
	return hkdf.Key(sha256.New, s.key[:], nil, "kumo "+purpose, n)
}

func sum(key []byte) []byte {
	h := sha256.Sum256(append([]byte("kumo secret "), key...))
	return h[:sumSize]
}
