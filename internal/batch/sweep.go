package batch

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"kumo/internal/batch/collection"
)

// clean removes files that a completed job makes obsolete: its work folder, and after merge the rounds' Documents.
func (p *Pipeline) clean(ctx context.Context, pt *collectionDay, work string, done *jobReport) error {
	if err := p.dropWork(ctx, work, done); err != nil {
		return err
	}
	if pt.state.Next.Job == "" {
		return p.removeIndexParts(ctx, pt)
	}
	if pt.state.Next.Job != JobXML {
		return nil
	}
	if err := p.removeRounds(ctx, pt); err != nil {
		return err
	}
	return p.removeOldKnown(ctx, pt)
}

// removeRounds removes the rounds' Documents.
func (p *Pipeline) removeRounds(ctx context.Context, pt *collectionDay) error {
	dir := DayFolder(pt.Collection, "doc", p.Date)
	infos, err := p.Place.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, i := range infos {
		if i.IsDir && strings.HasPrefix(i.Name, roundPrefix) {
			if err := p.Place.Remove(ctx, path.Join(dir, i.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropWork removes a job's work folder when all collections of the job have published their part.
func (p *Pipeline) dropWork(ctx context.Context, work string, done *jobReport) error {
	for _, f := range done.Collections {
		s, err := ReadState(ctx, p.Place, &collection.Collection{Code: f.Code, Directory: f.Directory}, done.Date)
		if err != nil || s != nil && s.Work == work {
			return err
		}
	}
	return p.Place.Remove(ctx, work)
}

// sweepWork removes work folders that an interrupted run did not remove.
func (p *Pipeline) sweepWork(ctx context.Context) error {
	infos, err := p.Place.List(ctx, WorkFolder)
	if err != nil {
		return err
	}
	for _, i := range infos {
		work := path.Join(WorkFolder, i.Name)
		var done jobReport
		err := ReadJSON(ctx, p.Place, path.Join(work, reportName), &done)
		if errors.Is(err, fs.ErrNotExist) {
			continue // active, or removed when its collections run
		}
		if err == nil {
			err = p.dropWork(ctx, work, &done)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keptKnownDays is the number of days whose known URLs are kept: the next day needs the last one, and repeating the
// last day needs the one before.
const keptKnownDays = 2

// removeOldKnown removes the known URLs of earlier days.
func (p *Pipeline) removeOldKnown(ctx context.Context, pt *collectionDay) error {
	days, err := Days(ctx, p.Place, pt.Collection, "known")
	if err != nil {
		return err
	}
	for _, d := range days[:max(0, len(days)-keptKnownDays)] {
		if err := p.Place.Remove(ctx, DayFolder(pt.Collection, "known", d)); err != nil {
			return err
		}
	}
	return nil
}
