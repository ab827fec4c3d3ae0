package inspect

import (
	"context"
	"errors"
	"iter"
)

// A Steerer has a crawl that runs do something.
type Controller interface {
	// fetch nothing new while it is on; what is under way goes on
	Pause(ctx context.Context, on bool) error
	Stop(ctx context.Context) error                               // end in order, as Ctrl-C has it
	Add(ctx context.Context, urls []string) (news int, err error) // begin with these, too; durable when it returns
}

// A Setting is a setting of the crawl by its key; without values it is as by default.
type Setting struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
	// Was is what it has to be for the change to be made; nil: whatever it is.
	Was []string `json:"was,omitzero"`
}

// ErrConflict is the error of changes of settings that are not what they had to be.
var ErrConflict = errors.New("somebody else has changed the same settings meanwhile: try again")

// A Setter changes settings of a crawl that runs, all of them or none.
type Setter interface {
	Set(ctx context.Context, changes []Setting) (was []Setting, err error)
}

const maxTries = 10 // until changes are given up that others' come before each time

// Tune makes the changes that f makes of the settings that there are, which read reads. Both are called again when
// somebody else has changed the same ones meanwhile.
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

// A Copied says how far a snapshot is.
type Copied struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`           // copied, or shared with the crawl's folder by hard links
	Total int64 `json:"total,omitempty"` // of them, as far as it is known
}

// A Snapshooter copies the folder of a crawl that runs, as it is at one moment, into a new folder.
type Snapshotter interface {
	Snapshot(ctx context.Context, target string) iter.Seq2[Copied, error] // how far it is, again and again
}
