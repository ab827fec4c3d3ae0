package bus

import (
	"fmt"
	"strings"

	"kumo/internal/cluster/strategy"
)

// maxKey is the maximum length of a key, in bytes.
const maxKey = 200

// CheckKey returns an error unless a string is a valid key, or name of a log: words of letters, digits, "-", "_" and
// "~" separated by "/", at most 200 bytes.
func CheckKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("key %.20q… has more than %d bytes", key, maxKey)
	}
	for word := range strings.SplitSeq(key, "/") {
		if !isWord(word) {
			return fmt.Errorf("key %q: want words of letters, digits, -, _ and ~ separated by /", key)
		}
	}
	return nil
}

// Covers reports whether a key is one of keys: of all if it is "", of those that begin with it if it ends with a slash,
// or the key itself.
func Covers(keys, key string) bool {
	return keys == "" || keys == key || strings.HasSuffix(keys, "/") && strings.HasPrefix(key, keys)
}

// CheckNode returns an error unless a node's identity is valid: one word of a key.
func CheckNode(node strategy.Node) error {
	if len(node) > maxKey || !isWord(string(node)) {
		return fmt.Errorf("node %.40q: want one word of letters, digits, -, _ and ~", string(node))
	}
	return nil
}

func isWord(word string) bool {
	for i := range len(word) {
		c := word[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '~':
		default:
			return false
		}
	}
	return word != ""
}

// CheckMessage returns an error unless a message can be sent to a node.
func CheckMessage(to strategy.Node, data []byte) error {
	if err := CheckNode(to); err != nil {
		return err
	}
	if err := CheckSize(data); err != nil {
		return fmt.Errorf("message to %s: %w", to, err)
	}
	return nil
}

// CheckSize returns ErrTooLarge for data of more than MaxData bytes.
func CheckSize(data []byte) error {
	if len(data) > MaxData {
		return fmt.Errorf("%d bytes: %w", len(data), ErrTooLarge)
	}
	return nil
}
