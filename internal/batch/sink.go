package batch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"

	"kumo/internal/batch/seqfile"
	"kumo/internal/place"
	"kumo/internal/store/xml"
)

// A Sink writes what one attempt of a task emits as files of a folder: FOLDER/part-00012, and so on, as the job routes
// it; beside XML an index of it, FOLDER/index-00012.jsonl. They appear with Commit. One goroutine uses it.
type Sink struct {
	ctx   context.Context
	place place.Place
	dir   string
	part  int
	job   *Job
	files map[string]*sinkFile // by folder
	names []string             // in the order of their making
	line  []byte               // of an index
}

// A sinkFile is a file that is being written.
type sinkFile struct {
	place.Writer
	name  string
	out   *bufio.Writer
	seq   *seqfile.Writer // nil for XML
	route Route
	index *sinkFile // of XML
	size  int64     // bytes of XML so far
}

// NewSink returns a sink of part number part in the folder dir of a place.
func NewSink(ctx context.Context, p place.Place, dir string, part int, job *Job) *Sink {
	return &Sink{ctx: ctx, place: p, dir: dir, part: part, job: job, files: map[string]*sinkFile{}}
}

// PartName is the name of a part's file.
func PartName(part int, form Form) string {
	if form == XML {
		return fmt.Sprintf("part-%05d.xml", part)
	}
	return fmt.Sprintf("part-%05d", part)
}

// Emit takes a record.
func (s *Sink) Emit(key, value []byte) error {
	route := s.job.RouteOf(key, value)
	f := s.files[route.Folder]
	if f == nil {
		var err error
		if f, err = s.create(route); err != nil {
			return err
		}
	}
	if f.route != route {
		return fmt.Errorf("job %s: records of two forms in %s", s.job.Name, route.Folder)
	}
	if f.seq != nil {
		return f.seq.Append(key, value)
	}
	return s.emitXML(f, value[1:])
}

func (s *Sink) emitXML(f *sinkFile, line []byte) error {
	e, err := entryOf(line, path.Base(f.name), f.size)
	if err != nil {
		return fmt.Errorf("job %s: %w", s.job.Name, err)
	}
	s.line = e.appendLine(s.line[:0])
	_, err = f.out.Write(line)
	f.size += int64(len(line))
	if err == nil {
		_, err = f.index.out.Write(s.line)
	}
	return err
}

func (s *Sink) create(route Route) (*sinkFile, error) {
	dir := s.dir + "/" + route.Folder + "/"
	f, err := s.open(dir + PartName(s.part, route.Form))
	if err != nil {
		return nil, err
	}
	f.route = route
	if route.Form == XML {
		if f.index, err = s.open(fmt.Sprintf("%s%s%05d.jsonl", dir, indexPrefix, s.part)); err == nil {
			_, err = f.out.WriteString(xml.Header)
			f.size = int64(len(xml.Header))
		}
	} else {
		f.seq, err = seqfile.NewWriter(f.out)
	}
	if err != nil {
		f.Abort()
		return nil, err
	}
	s.files[route.Folder] = f
	s.names = append(s.names, route.Folder)
	return f, nil
}

func (s *Sink) open(name string) (*sinkFile, error) {
	w, err := s.place.Create(s.ctx, name)
	if err != nil {
		return nil, err
	}
	return &sinkFile{Writer: w, name: name, out: bufio.NewWriterSize(w, 64<<10)}, nil
}

// Abort drops the file, with its index.
func (f *sinkFile) Abort() {
	f.Writer.Abort()
	if f.index != nil {
		f.index.Abort()
	}
}

// finish lets the file appear, its index before it.
func (f *sinkFile) finish() error {
	var err error
	switch {
	case f.seq != nil:
		err = f.seq.Close()
	case f.index != nil:
		if _, err = f.out.WriteString(xml.Footer); err == nil {
			err = f.index.finish()
		}
	}
	if err == nil {
		err = f.out.Flush()
	}
	if err != nil {
		f.Abort()
		return err
	}
	return f.Close()
}

// Commit lets the files appear. After an error none of them is left.
func (s *Sink) Commit() error {
	for i, folder := range s.names {
		if err := s.files[folder].finish(); err != nil {
			for _, done := range s.names[:i+1] {
				err = errors.Join(err, s.files[done].remove(s.ctx, s.place))
			}
			s.Abort()
			return err
		}
	}
	return nil
}

// remove removes what has appeared of the file.
func (f *sinkFile) remove(ctx context.Context, p place.Place) error {
	err := p.Remove(ctx, f.name)
	if f.index != nil {
		err = errors.Join(err, p.Remove(ctx, f.index.name))
	}
	return err
}

// Abort drops what has not appeared.
func (s *Sink) Abort() {
	for _, f := range s.files {
		f.Abort()
	}
}
