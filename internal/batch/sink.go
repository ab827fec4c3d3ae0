package batch

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"kumo/internal/batch/seqfile"
	"kumo/internal/place"
	"kumo/internal/store/xml"
)

// A Sink writes what one attempt of a task emits as files of a folder: FOLDER/part-00012, and so on, as the job routes
// it. They appear with Commit. One goroutine uses it.
type Sink struct {
	ctx   context.Context
	place place.Place
	dir   string
	part  int
	job   *Job
	files map[string]*sinkFile // by folder
	names []string             // in the order of their making
}

// A sinkFile is a file that is being written.
type sinkFile struct {
	place.Writer
	name  string
	out   *bufio.Writer
	seq   *seqfile.Writer // nil for XML
	route Route
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
	_, err := f.out.Write(value[1:])
	return err
}

func (s *Sink) create(route Route) (*sinkFile, error) {
	f := &sinkFile{route: route, name: s.dir + "/" + route.Folder + "/" + PartName(s.part, route.Form)}
	w, err := s.place.Create(s.ctx, f.name)
	if err != nil {
		return nil, err
	}
	f.Writer, f.out = w, bufio.NewWriterSize(w, 64<<10)
	if route.Form == XML {
		_, err = f.out.WriteString(xml.Header)
	} else {
		f.seq, err = seqfile.NewWriter(f.out)
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	s.files[route.Folder] = f
	s.names = append(s.names, route.Folder)
	return f, nil
}

func (f *sinkFile) finish() error {
	var err error
	if f.seq != nil {
		err = f.seq.Close()
	} else {
		_, err = f.out.WriteString(xml.Footer)
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
			for _, done := range s.names[:i] {
				err = errors.Join(err, s.place.Remove(s.ctx, s.files[done].name))
			}
			s.Abort()
			return err
		}
	}
	return nil
}

// Abort drops what has not appeared.
func (s *Sink) Abort() {
	for _, f := range s.files {
		f.Abort()
	}
}
