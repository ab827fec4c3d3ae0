package session

import (
	"context"
	"errors"
	"os"
	"slices"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
)

// ErrNotRunning means that the crawl is not running.
var ErrNotRunning = errors.New("the crawl is not running")

// Set changes settings of the running crawl in dir; a setting without values gets its default. It returns the previous
// values, or ErrNotRunning.
func Set(ctx context.Context, dir string, changes []inspect.Setting) (was []inspect.Setting, err error) {
	err = withRunning(ctx, dir, func(c *inspect.Client) error {
		was, err = c.Set(ctx, changes)
		return err
	})
	return was, err
}

// withRunning calls f with a client of the running crawl in dir. It returns ErrNotRunning if there is none.
func withRunning(ctx context.Context, dir string, f func(*inspect.Client) error) error {
	at := folder.At(dir, vfs.OS)
	if !at.IsCrawl() {
		return folder.NoCrawlError(dir)
	}
	return retryWhileBusy(ctx, func() (again bool, err error) {
		switch err = at.Share(os.O_CREATE); {
		case err == nil:
			return false, errors.Join(ErrNotRunning, at.Close())
		case !errors.Is(err, folder.ErrLocked):
			return false, err
		}
		client, err := inspect.Dial(ctx, at.Path(folder.EndpointName))
		if err != nil {
			return errors.Is(err, inspect.ErrUnreachable), err
		}
		defer client.Close() //nolint:errcheck // an idle connection
		err = f(client)
		return errors.Is(err, inspect.ErrUnreachable), err
	})
}

// Set implements [inspect.Setter]: it changes settings during the run, and writes them to config.yaml.
func (s source) Set(_ context.Context, changes []inspect.Setting) (was []inspect.Setting, err error) {
	c := s.session
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.Job.Change == nil || c.Folder.IsNodes() {
		return nil, errors.New("the settings of this crawl cannot be changed here")
	}
	now, err := settings.Read(c.Folder.Path(settings.Name))
	if err != nil {
		return nil, err
	}
	var wishes []settings.Setting
	for _, change := range changes {
		if s := setting.Find(change.Key); s == nil || s.Change != setting.Live {
			return nil, advice.Usage("%s cannot change while the crawl runs", change.Key)
		}
		old := settings.Map(now)[change.Key]
		if change.Was != nil && !slices.Equal(change.Was, old) {
			return nil, inspect.ErrConflict
		}
		wishes = append(wishes, settings.Setting{Key: change.Key, Values: change.Values})
		was = append(was, inspect.Setting{Key: change.Key, Values: old})
	}
	return was, c.Job.Change(wishes, c.Tune)
}
