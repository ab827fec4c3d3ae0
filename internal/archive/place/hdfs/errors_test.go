package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
)

// said is an error reply of a NameNode.
type said struct{ class, message string }

func (s said) Error() string     { return "the call failed (" + s.class + ")" }
func (s said) Method() string    { return "create" }
func (s said) Desc() string      { return "ERROR_APPLICATION" }
func (s said) Exception() string { return s.class }
func (s said) Message() string   { return s.message }

func TestWhatTheNameNodeSaysInWords(t *testing.T) {
	p := &Place{authority: "nn:8020", root: "/crawls", user: "ann"}
	for _, c := range []struct {
		err    error
		kind   error
		word   string
		advice bool
	}{
		{said{"org.apache.hadoop.hdfs.server.namenode.SafeModeException",
			"Cannot create. Name node is in safe mode.\nat x"}, ErrSafeMode, "safe mode", true},
		{said{"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
			"The DiskSpace quota of /crawls is exceeded\nat x"}, syscall.ENOSPC, "quota of /crawls", true},
		{said{"java.lang.IllegalStateException", "java.lang.IllegalStateException: odd\n\tat x"}, nil,
			"IllegalStateException: odd", false},
		{&fs.PathError{Op: "create", Path: "/x", Err: fs.ErrPermission}, fs.ErrPermission, "the user ann has no permission",
			true},
		{&fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}, fs.ErrNotExist, "not exist", false},
	} {
		err := p.explain(t.Context(), "write", "/crawls/f", fmt.Errorf("attempt: %w", c.err))
		if want := errors.Is(c.kind, ErrSafeMode) || errors.Is(c.kind, syscall.ENOSPC); place.IsTransient(err) != want {
			t.Errorf("%v passes: %v", err, !want)
		}
		if c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%v is not %v", err, c.kind)
		}
		for _, word := range []string{c.word, "write hdfs://nn:8020/crawls/f"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
		if strings.Contains(err.Error(), "\n") || (advice.Of(err) != "") != c.advice {
			t.Errorf("%q advises %q", err, advice.Of(err))
		}
	}
}

func TestWhichErrorsAreAnswers(t *testing.T) {
	for err, want := range map[error]bool{
		said{"java.io.IOException", "x"}:                         true,
		said{"org.apache.hadoop.ipc.RetriableException", "x"}:    false,
		&fs.PathError{Op: "stat", Path: "/", Err: fs.ErrInvalid}: true,
		syscall.ECONNRESET:               false,
		errors.New("no available nodes"): false,
	} {
		if got := isReply(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestNamesComeBack(t *testing.T) {
	for _, name := range []string{"a:b", "a%3Ab", "%", "%253A:%", "plain"} {
		there := escape.Replace(name)
		if strings.Contains(there, ":") || unescape.Replace(there) != name {
			t.Errorf("%q is %q there and comes back as %q", name, there, unescape.Replace(there))
		}
	}
}

func TestTheOwnerOfALease(t *testing.T) {
	const message = "Failed to APPEND_FILE /x/.l.lock for go-hdfs-b on 127.0.0.1 because this file lease is currently " +
		"owned by go-hdfs-a on 10.0.0.7\n\tat"
	if got := owner(message); got != " on 10.0.0.7" {
		t.Errorf("%q", got)
	}
	if got := owner("something else"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestWhereTicketsAre(t *testing.T) {
	for name, want := range map[string]string{"FILE:/a/b": "/a/b", "/a/b": "/a/b", "KEYRING:persistent:0": "",
		"DIR:/x": ""} {
		t.Setenv("KRB5CCNAME", name)
		got, err := ticketFile()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	t.Setenv("KRB5_CONFIG", "/nowhere/krb5.conf")
	if _, err := login(); advice.Of(err) == "" {
		t.Errorf("without a configuration of Kerberos: %v", err)
	}
}
