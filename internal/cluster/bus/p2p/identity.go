package p2p

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

const (
	keyFile = "key"
	maxName = 64 // bytes of a node's name
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// loadKey reads the node's key from its folder, and creates it the first time. Without a folder it returns a new key.
func loadKey(dir string) (crypto.PrivKey, error) {
	if dir == "" {
		return crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(newSeed()))
	}
	name := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = makeKey(name); err != nil {
			return nil, fmt.Errorf("create the node's key: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the node's key: %w", err)
	}
	seed, err := letters.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is not a valid key; if it is removed, the node gets a new key and a new identity", name)
	}
	return crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed))
}

func newSeed() []byte {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails
	return seed
}

// makeKey writes a new key, readable by its owner only. It renames a temporary file, so that an existing key file is
// always complete.
func makeKey(name string) ([]byte, error) {
	text := []byte(letters.EncodeToString(newSeed()) + "\n")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), keyFile+".*.tmp") // readable by its owner only
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return text, nil
}

// nodeOf returns the identity of the node with a name and a key: the name, "~" and the public key's 52 letters. So a
// peer that has proved to have the key cannot impersonate another node, whatever its name.
func nodeOf(name string, id peer.ID) (strategy.Node, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	key, err := id.ExtractPublicKey()
	if err != nil || key.Type() != crypto.Ed25519 {
		return "", fmt.Errorf("%s has no Ed25519 key: %w", id, errors.Join(err, errors.ErrUnsupported))
	}
	raw, err := key.Raw()
	if err != nil {
		return "", err
	}
	return strategy.Node(name + "~" + letters.EncodeToString(raw)), nil
}

func idOf(node strategy.Node) (peer.ID, error) {
	name := node.Name()
	if len(name) == len(node) {
		return "", fmt.Errorf("node %.80q: its identity contains no key", string(node))
	}
	raw, err := letters.DecodeString(string(node[len(name)+1:]))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return "", fmt.Errorf("node %.80q: its identity contains no key", string(node))
	}
	key, err := crypto.UnmarshalEd25519PublicKey(raw)
	if err != nil {
		return "", err
	}
	return peer.IDFromPublicKey(key)
}

func checkName(name string) error {
	if len(name) > maxName || strings.Contains(name, "~") || bus.CheckNode(strategy.Node(name)) != nil {
		return fmt.Errorf("name %.80q: want one word of letters, digits, - and _, at most %d bytes", name, maxName)
	}
	return nil
}
