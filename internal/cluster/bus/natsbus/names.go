package natsbus

import (
	"strings"

	"kumo/internal/cluster/strategy"
)

// names contains the names of a crawl's subjects and streams. The words of a key are the tokens of a subject.
type names struct{ crawl string }

// A stream has a name, and a subject for its marks.
type stream struct{ name, mark string }

func (n names) registry() stream {
	return stream{"kumo-" + n.crawl + "-registry", n.prefix() + "r.mark"}
}
func (n names) logs() stream { return stream{"kumo-" + n.crawl + "-logs", n.prefix() + "l.mark"} }

func (n names) prefix() string { return "kumo." + n.crawl + "." }

// Each stream has data and marks. The logs also have trim records.
func (n names) key(key string) string { return n.prefix() + "r.d." + tokens(key) }

// keys returns the subject of a key, or with a slash at the end that of all keys below it.
func (n names) keys(watched string) string {
	if strings.HasSuffix(watched, "/") {
		return n.key(watched) + ">"
	}
	return n.key(watched)
}

func (n names) log(log string) string  { return n.prefix() + "l.d." + tokens(log) }
func (n names) trim(log string) string { return n.prefix() + "l.t." + tokens(log) }
func (n names) servers() string        { return n.prefix() + "r.servers" } // the addresses of all servers
func (n names) allRegistry() string    { return n.prefix() + "r.>" }
func (n names) allLogs() string        { return n.prefix() + "l.>" }

// updates is the subject on which the servers republish writes to the registry.
func (n names) updates() string { return n.prefix() + "n.>" }

func (n names) message(to, from strategy.Node) string {
	return n.prefix() + "m." + string(to) + "." + string(from)
}

func (n names) messages(to strategy.Node) string { return n.prefix() + "m." + string(to) + ".*" }

// keyOf returns the key of a subject of the registry; "" for a mark.
func (n names) keyOf(subject string) string {
	key, ok := strings.CutPrefix(subject, n.prefix()+"r.d.")
	if !ok {
		return ""
	}
	return strings.ReplaceAll(key, ".", "/")
}

func tokens(key string) string { return strings.ReplaceAll(key, "/", ".") }

// sender returns the sender of a message, which is the last token of its subject.
func sender(subject string) strategy.Node {
	return strategy.Node(subject[strings.LastIndexByte(subject, '.')+1:])
}
