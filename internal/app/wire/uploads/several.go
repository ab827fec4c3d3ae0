package uploads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/app/folder"
	"kumo/internal/app/wire/places"
	"kumo/internal/archive/away"
	"kumo/internal/archive/merged"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
)

// lostDir is the folder in a node's folder that has the files of its processes that were replaced by other nodes.
const lostDir = "lost"

// OpenSources opens several crawls as one, such as the parts of a crawl that its nodes have stored: see Parts.
func OpenSources(ctx context.Context, names ...string) (_ *Source, err error) {
	all, err := Parts(ctx, names...)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return OpenSource(ctx, all[0])
	}
	s := &Source{Remote: true, parts: make([]*Source, len(all)), names: all}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Dir, err = os.MkdirTemp("", "kumo-parts-"); err != nil {
		return nil, err
	}
	folders := make([]merged.Folder, len(all))
	for i, name := range all {
		if s.parts[i], err = OpenSource(ctx, name); err != nil {
			return nil, err
		}
		folders[i] = merged.Folder{Name: name, Dir: s.parts[i].Dir, Disk: s.parts[i].Disk}
		if err := s.addSettings(i); err != nil {
			return nil, err
		}
	}
	s.Disk = merged.New(vfs.OS, s.Dir, folders)
	return s, nil
}

// Parts returns the names of crawls that are the parts of one. A name is that of a folder, with the folders of its lost
// processes, or the URL of a storage location. A folder or location that is no crawl stands for the crawls in it.
func Parts(ctx context.Context, names ...string) (all []string, err error) {
	for _, name := range names {
		parts, err := partsOf(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// addSettings copies the settings of the first part. The others must be of the same crawl.
func (s *Source) addSettings(i int) error {
	data, err := os.ReadFile(filepath.Join(s.parts[i].Dir, settings.Name))
	if errors.Is(err, os.ErrNotExist) {
		return folder.NoCrawlError(s.names[i])
	}
	if err != nil || i > 0 {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, settings.Name), data, 0o600)
}

// partsOf returns the names of the crawls that a name stands for.
func partsOf(ctx context.Context, name string) ([]string, error) {
	if places.IsURL(name) {
		return placesIn(ctx, name)
	}
	if own := withLost(name); len(own) > 0 {
		return own, nil
	}
	entries, err := os.ReadDir(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, folder.NoCrawlError(name)
	}
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, withLost(filepath.Join(name, e.Name()))...)
		}
	}
	if len(all) == 0 {
		return nil, folder.NoCrawlError(name)
	}
	return all, nil
}

// withLost returns a crawl's folder and those of its lost processes; none if it is not a crawl.
func withLost(dir string) (all []string) {
	isCrawl := func(dir string) bool {
		f := folder.At(dir, vfs.OS)
		return f.IsCrawl() || f.HasOutputs()
	}
	if !isCrawl(dir) {
		return nil
	}
	all = []string{dir}
	lost, _ := os.ReadDir(filepath.Join(dir, lostDir)) // there may be none
	for _, e := range lost {
		if life := filepath.Join(dir, lostDir, e.Name()); e.IsDir() && isCrawl(life) {
			all = append(all, life)
		}
	}
	return all
}

// placesIn returns the URL of a location with a crawl, or those of the locations in it that have one.
func placesIn(ctx context.Context, name string) (all []string, err error) {
	p, err := openPlace(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closePlace(p)) }()
	isCrawl := func(dir string) (bool, error) {
		_, err := p.Stat(ctx, dir+away.ManifestName)
		if away.IsMissing(err) {
			return false, nil
		}
		return err == nil, err
	}
	if is, err := isCrawl(""); is || err != nil {
		return []string{name}, err
	}
	infos, err := p.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if !info.IsDir {
			continue
		}
		is, err := isCrawl(info.Name + "/")
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, Child(name, info.Name))
		}
	}
	if len(all) == 0 {
		return []string{name}, nil // for its error
	}
	return all, nil
}

// Folders returns the local folders of a source.
func (s *Source) Folders() (all []string) {
	for _, p := range s.parts {
		all = append(all, p.Folders()...)
	}
	if len(s.parts) == 0 && !s.Remote {
		all = []string{s.Dir}
	}
	return all
}

// Share locks the local folders of a source against a crawl, until Close.
func (s *Source) Share() error {
	for _, dir := range s.Folders() {
		f := folder.At(dir, vfs.OS)
		err := f.Share(0)
		if errors.Is(err, folder.ErrLocked) {
			return advice.With(err, fmt.Sprintf("kumo snapshot %s copies it while it runs; the copy can be exported", dir))
		}
		if err != nil {
			return err
		}
		s.locked = append(s.locked, f)
	}
	return nil
}

// title describes the source in errors.
func (s *Source) title() string {
	switch {
	case len(s.names) > 3:
		return fmt.Sprintf("%d folders (%s, …)", len(s.names), s.names[0])
	case len(s.names) > 0:
		return strings.Join(s.names, " + ")
	}
	return s.place.URL()
}
