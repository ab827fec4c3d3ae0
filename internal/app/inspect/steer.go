package inspect

import (
	"context"
	"errors"
	"iter"
)

// A Controller controls a running crawl.
type Controller interface {
	// Start no new requests while on is true; requests in progress continue.
	Pause(ctx context.Context, on bool) error
	Stop(ctx context.Context) error                               // end in order, as on Ctrl-C
	Add(ctx context.Context, urls []string) (news int, err error) // add seeds; they are durable when it returns
}

// A Setting is a setting of the crawl by its key. Without values it has its default.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
	// Was is the value that the setting must currently have for the change to apply; nil: any.
	Was []string `json:"was,omitzero"`
}

// ErrConflict means that a setting did not have the expected value.
var ErrConflict = errors.New("another user has changed the same settings: try again")

// A Setter changes settings of a running crawl, all of them or none.
type Setter interface {
	Set(ctx context.Context, changes []Setting) (was []Setting, err error)
}

const maxTries = 10 // attempts before Tune gives up on conflicts

// Tune changes settings to those that f returns for the current settings, which read returns. On a conflict it calls
// both again.
func Tune(ctx context.Context, s Setter, read func() (map[string][]string, error),
	f func(now map[string][]string) ([]Setting, error)) (changes, was []Setting, err error) {
	for range maxTries {
		now, err := read()
		if err != nil {
			return nil, nil, err
		}
		if changes, err = f(now); err != nil {
			return nil, nil, err
		}
		for i := range changes {
			changes[i].Was = append([]string{}, now[changes[i].Key]...)
		}
		if was, err = s.Set(ctx, changes); !errors.Is(err, ErrConflict) {
			return changes, was, err
		}
	}
	return nil, nil, ErrConflict
}

// A Copied is the progress of a snapshot.
type Copied struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`           // copied, or shared with the crawl's folder by hard links
	Total int64 `json:"total,omitempty"` // total bytes, if known
}

// A Snapshotter copies the folder of a running crawl, as of one moment, into a new folder.
type Snapshotter interface {
	Snapshot(ctx context.Context, target string) iter.Seq2[Copied, error] // yields the progress
}
