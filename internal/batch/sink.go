package batch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"kumo/internal/archive/place"
	"kumo/internal/batch/seqfile"
	"kumo/internal/state/store/xml"
)

// A Sink writes the output of one attempt of a task to files: FOLDER/part-00012 and so on, in the folders that the
// job's routes name; for XML also an index, FOLDER/index-00012.jsonl. XML files are sorted by URL. If a URL precedes
// the last one, as in a task that reads several files, a new piece is started: part-00012-1.xml, and so on. Files
// appear with Commit. A Sink is used by one goroutine.
type Sink struct {
	ctx   context.Context
	place place.Place
	dir   string
	part  int
	job   *Job
	files map[string]*sinkFile // latest file by folder
	made  []*sinkFile          // all files, in order of creation
	line  []byte               // line of an index
}

// A sinkFile is an open output file.
type sinkFile struct {
	place.Writer
	name  string
	out   *bufio.Writer   // nil when the file is complete
	seq   *seqfile.Writer // for a SequenceFile
	route Route

	// for XML
	index *sinkFile
	size  int64  // bytes written
	last  string // last URL
	piece int    // number within the part
}

// NewSink returns a sink for part number part in a folder.
func NewSink(ctx context.Context, p place.Place, dir string, part int, job *Job) *Sink {
	return &Sink{ctx: ctx, place: p, dir: dir, part: part, job: job, files: map[string]*sinkFile{}}
}

// PartName returns the file name of a part.
func PartName(part int, form Format) string {
	switch form {
	case XML:
		return fmt.Sprintf("part-%05d.xml", part)
	case Lines:
		return fmt.Sprintf("part-%05d.jsonl", part)
	}
	return fmt.Sprintf("part-%05d", part)
}

// Emit writes a record.
func (s *Sink) Emit(key, value []byte) error {
	route := s.job.RouteOf(key, value)
	f := s.files[route.Folder]
	if f == nil {
		var err error
		if f, err = s.create(route, 0); err != nil {
			return err
		}
	}
	if f.route != route {
		return fmt.Errorf("job %s: records of two formats in %s", s.job.Name, route.Folder)
	}
	switch f.route.Format {
	case Sequence:
		return f.seq.Append(key, value)
	case Lines:
		_, err := f.out.Write(value[1:])
		return err
	}
	return s.emitXML(f, value[1:])
}

func (s *Sink) emitXML(f *sinkFile, line []byte) error {
	e, err := entryOf(line)
	if err != nil {
		return fmt.Errorf("job %s: %w", s.job.Name, err)
	}
	if e.URL < f.last {
		if err := f.complete(); err != nil {
			return err
		}
		if f, err = s.create(f.route, f.piece+1); err != nil {
			return err
		}
	}
	e.Part, e.Offset = path.Base(f.name), f.size
	s.line = e.appendLine(s.line[:0])
	_, err = f.out.Write(line)
	f.size += int64(len(line))
	f.last = e.URL
	if err == nil {
		_, err = f.index.out.Write(s.line)
	}
	return err
}

// create creates a file. Only XML has pieces other than 0.
func (s *Sink) create(route Route, piece int) (*sinkFile, error) {
	dir := s.dir + "/" + route.Folder + "/"
	name, index := PartName(s.part, route.Format), fmt.Sprintf("%s%05d.jsonl", indexPrefix, s.part)
	if piece > 0 {
		name, index = pieceName(name, piece), pieceName(index, piece)
	}
	f, err := s.open(dir + name)
	if err != nil {
		return nil, err
	}
	f.route, f.piece = route, piece
	switch route.Format {
	case XML:
		if f.index, err = s.open(dir + index); err == nil {
			_, err = f.out.WriteString(xml.Header)
			f.size = int64(len(xml.Header))
		}
	case Sequence:
		f.seq, err = seqfile.NewWriter(f.out)
	}
	if err != nil {
		f.Abort()
		return nil, err
	}
	s.files[route.Folder] = f
	s.made = append(s.made, f)
	return f, nil
}

// pieceName returns the name of a further piece of a part: part-00012-1.xml.
func pieceName(name string, piece int) string {
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), piece, ext)
}

func (s *Sink) open(name string) (*sinkFile, error) {
	w, err := s.place.Create(s.ctx, name)
	if err != nil {
		return nil, err
	}
	return &sinkFile{Writer: w, name: name, out: bufio.NewWriterSize(w, 64<<10)}, nil
}

// Abort discards the file and its index.
func (f *sinkFile) Abort() {
	f.Writer.Abort()
	if f.index != nil {
		f.index.Abort()
	}
}

// complete writes buffered data and releases the buffers.
func (f *sinkFile) complete() error {
	if f.out == nil {
		return nil
	}
	var err error
	switch {
	case f.seq != nil:
		err = f.seq.Close()
	case f.index != nil:
		if _, err = f.out.WriteString(xml.Footer); err == nil {
			err = f.index.complete()
		}
	}
	if err == nil {
		err = f.out.Flush()
	}
	f.out, f.seq = nil, nil
	return err
}

// finish publishes the file, after its index.
func (f *sinkFile) finish() error {
	err := f.complete()
	if err == nil && f.index != nil {
		err = f.index.Close()
	}
	if err != nil {
		f.Abort()
		return err
	}
	return f.Close()
}

// Commit publishes the files. After an error, none of them is left.
func (s *Sink) Commit() error {
	for i, f := range s.made {
		if err := f.finish(); err != nil {
			for _, done := range s.made[:i+1] {
				err = errors.Join(err, done.remove(s.ctx, s.place))
			}
			s.Abort()
			return err
		}
	}
	return nil
}

// remove removes the published file.
func (f *sinkFile) remove(ctx context.Context, p place.Place) error {
	err := p.Remove(ctx, f.name)
	if f.index != nil {
		err = errors.Join(err, p.Remove(ctx, f.index.name))
	}
	return err
}

// Abort discards files that are not published.
func (s *Sink) Abort() {
	for _, f := range s.made {
		f.Abort()
	}
}
