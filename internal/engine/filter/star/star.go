// Package star runs filters written in Starlark, a small language like Python, inside this process. A script defines
// link(l), request(r) and record(p). Each function receives the question as a dict and returns None or a dict as the
// answer; see docs/reference/filters.md. Steps and memory are bounded; see rewrite and meter.
package star

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"kumo/internal/base/advice"
	"kumo/internal/engine/filter"
)

const (
	maxFile  = 1 << 20
	maxSteps = 1_000_000 // of a question; a link takes about a hundred
)

// A Script answers questions. It is safe for concurrent use.
type Script struct {
	*filter.Account
	cfg    filter.Config
	choice filter.Choice
	points map[string]starlark.Callable
	slots  chan struct{} // for heavy questions
	fresh  sync.Pool     // idle meters and their threads
}

// Open runs a file, and finds its functions. An invalid file is a usage error.
func Open(cfg filter.Config) (*Script, error) {
	s := &Script{Account: filter.NewAccount(&cfg), cfg: cfg, points: map[string]starlark.Callable{}, slots: newSlots()}
	if err := s.load(); err != nil {
		return nil, advice.Usage("filter %s: %w", s.Name(), err)
	}
	return s, nil
}

// Check checks a file.
func Check(file string) error {
	_, err := Open(filter.Config{Command: file})
	return err
}

func (s *Script) load() error {
	info, err := os.Stat(s.cfg.Command)
	if err != nil {
		return err
	}
	if info.Size() > maxFile {
		return fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), maxFile)
	}
	text, err := os.ReadFile(s.cfg.Command)
	if err != nil {
		return err
	}
	opts := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
	f, err := opts.Parse(s.cfg.Command, text, 0)
	if err != nil {
		return withLine(err)
	}
	rewrite(f)
	program, err := starlark.FileProgram(f, predeclared.Has)
	if err != nil {
		return withLine(err)
	}
	m := s.meter()
	globals, err := program.Init(m.thread, predeclared)
	m.reset()
	if err != nil {
		return withLine(err)
	}
	globals.Freeze()
	for _, point := range filter.Points {
		switch f := globals[point].(type) {
		case nil:
		case starlark.Callable:
			s.points[point], s.choice.Points = f, append(s.choice.Points, point)
		default:
			return fmt.Errorf("%s is not a function", point)
		}
	}
	if len(s.points) == 0 {
		return errors.New("it defines none of the functions link(l), request(r) and record(p)")
	}
	return s.wants(globals["want"])
}

// wants reads the file's list of further data about records.
func (s *Script) wants(v starlark.Value) error {
	if v == nil {
		return nil
	}
	list, is := v.(*starlark.List)
	if !is {
		return errors.New(`want is a list, as in want = ["html"]`)
	}
	for i := range list.Len() {
		w, _ := starlark.AsString(list.Index(i))
		if !slices.Contains(filter.Wants, w) {
			return fmt.Errorf("unknown data in want: %s: use %q", list.Index(i), filter.Wants)
		}
		s.choice.Want = append(s.choice.Want, w)
	}
	return nil
}

// meter returns a meter with a thread for a question.
func (s *Script) meter() *meter {
	m, _ := s.fresh.Get().(*meter)
	if m == nil {
		t := &starlark.Thread{Name: s.Name(), Print: func(_ *starlark.Thread, msg string) {
			s.Say(filter.Plain(msg, filter.MaxHeard))
		}}
		m = &meter{thread: t, slots: s.slots}
		t.SetLocal(meterKey, m)
		t.OnMaxSteps = m.expire
	}
	m.begin()
	return m
}

// Choice returns the points that the file has functions for.
func (s *Script) Choice() *filter.Choice { return &s.choice }

// Close logs how many lines were dropped.
func (s *Script) Close() { s.FlushLog() }

// Ask answers questions of one point. An error ends the crawl.
func (s *Script) Ask(questions []filter.Question) ([]filter.Answer, error) {
	answers := make([]filter.Answer, len(questions))
	for i := range questions {
		q := &questions[i]
		a, err := s.call(q)
		if err != nil {
			s.CountFailure(err)
			if a, err = s.Unanswered(q, "", err); err != nil {
				return nil, err
			}
		}
		s.CountAnswer(q.Point, &a)
		answers[i] = a
	}
	return answers, nil
}

func (s *Script) call(q *filter.Question) (a filter.Answer, err error) {
	m := s.meter()
	v, err := starlark.Call(m.thread, s.points[q.Point], starlark.Tuple{dict(q)}, nil)
	if err != nil {
		m.reset()
		return a, withLine(err) // a canceled thread is not reused
	}
	a, err = s.answer(m.thread, q, v)
	m.reset()
	s.fresh.Put(m)
	return a, err
}

// answer converts a function's return value.
func (s *Script) answer(t *starlark.Thread, q *filter.Question, v starlark.Value) (a filter.Answer, err error) {
	if v == starlark.None {
		return a, nil
	}
	if _, is := v.(*starlark.Dict); !is {
		return a, fmt.Errorf("%w: %s returned a %s, expected None or a dict", filter.ErrInvalidAnswer, q.Point, v.Type())
	}
	if quotedSize(v, filter.MaxLine) > filter.MaxLine {
		return a, fmt.Errorf("%w: it is too large", filter.ErrInvalidAnswer)
	}
	text, err := starlark.Call(t, encode, starlark.Tuple{v}, nil)
	if err != nil {
		return a, fmt.Errorf("%w: %w", filter.ErrInvalidAnswer, withLine(err))
	}
	line, _ := starlark.AsString(text)
	a, err = filter.ParseAnswer(q.Point, []byte(line))
	if err == nil && s.cfg.Check != nil {
		err = s.cfg.Check(q.Point, &a)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", filter.ErrInvalidAnswer, err)
	}
	return a, err
}

var encode = json.Module.Members["encode"]

// withLine adds the line in the file to an error.
func withLine(err error) error {
	if e, is := errors.AsType[*starlark.EvalError](err); is && len(e.CallStack) > 0 {
		for i := range e.CallStack {
			if at := e.CallStack.At(i).Pos; at.IsValid() && at.Filename() != "<builtin>" {
				return fmt.Errorf("line %d: %s", at.Line, filter.Plain(e.Msg, filter.MaxReason))
			}
		}
	}
	return errors.New(filter.Plain(err.Error(), filter.MaxReason))
}

// dict converts a question to the dict that a function gets.
func dict(q *filter.Question) *starlark.Dict {
	d := starlark.NewDict(8)
	put := func(key string, v starlark.Value) { _ = d.SetKey(starlark.String(key), v) } // cannot fail for a new dict
	text := func(key, s string) {
		if s != "" {
			put(key, starlark.String(s))
		}
	}
	put("point", starlark.String(q.Point))
	put("url", starlark.String(q.URL))
	put("depth", starlark.MakeInt(q.Depth))
	text("from", q.From)
	text("element", q.Element)
	text("text", q.Text)
	text("rel", q.Rel)
	p := q.Page
	if p == nil {
		return d
	}
	put("status", starlark.MakeInt(p.Status))
	put("bytes", starlark.MakeInt64(p.Bytes))
	put("links", starlark.MakeInt(p.Links))
	put("time", starlark.String(p.Time))
	put("type", starlark.String(p.Type))
	text("final", p.Final)
	text("charset", p.Charset)
	text("lang", p.Lang)
	text("title", p.Title)
	text("html", p.HTML)
	if p.Cut {
		put("cut", starlark.True)
	}
	if p.Body != nil {
		put("body", starlark.Bytes(p.Body))
	}
	text("body_file", p.BodyFile)
	text("body_error", p.BodyError)
	if p.BodyCut {
		put("body_cut", starlark.True)
	}
	if p.Header != nil {
		fields := starlark.NewDict(len(p.Header))
		for name, values := range p.Header {
			list := make([]starlark.Value, len(values))
			for i := range values {
				list[i] = starlark.String(values[i])
			}
			_ = fields.SetKey(starlark.String(name), starlark.NewList(list))
		}
		put("header", fields)
	}
	return d
}
