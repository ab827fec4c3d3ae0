package bus

import (
	"fmt"
	"strings"

	"kumo/internal/cluster/strategy"
)

// maxKey is how many bytes a key may have.
const maxKey = 200

// CheckKey says why a key, or the name of a log, cannot be one: it is words of letters, digits, "-", "_" and "~", with
// a "/" between them, 200 bytes at most.
func CheckKey(key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("the key %.20q… has more than %d bytes", key, maxKey)
	}
	for word := range strings.SplitSeq(key, "/") {
		if !isWord(word) {
			return fmt.Errorf("the key %q is not words of letters, digits, -, _ and ~ with / between them", key)
		}
	}
	return nil
}

// CheckNode says why a node cannot be one: its identity is one word of a key.
func CheckNode(node strategy.Node) error {
	if len(node) > maxKey || !isWord(string(node)) {
		return fmt.Errorf("the node %.40q is not one word of letters, digits, -, _ and ~", string(node))
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

// CheckMessage says why a message cannot be sent to a node.
func CheckMessage(to strategy.Node, data []byte) error {
	if err := CheckNode(to); err != nil {
		return err
	}
	if err := CheckSize(data); err != nil {
		return fmt.Errorf("a message to %s: %w", to, err)
	}
	return nil
}

// CheckSize returns ErrTooLarge for what is beyond MaxData.
func CheckSize(data []byte) error {
	if len(data) > MaxData {
		return fmt.Errorf("%d bytes: %w", len(data), ErrTooLarge)
	}
	return nil
}
