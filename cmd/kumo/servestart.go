package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/base/vfs"
	"kumo/internal/base/wait"
	"kumo/internal/view/web/ui"
)

// A crawlStarter runs kumo crawl for users of the web page, and when a schedule says so. The crawls end in order with
// the server.
type crawlStarter struct {
	program string
	root    string          // folder of new crawls
	ctx     context.Context // of the server
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex // guards the fields below
	running map[string]*startedCrawl
	dirs    []string // of crawls that may have a schedule
	ended   sync.WaitGroup
}

// A startedCrawl is a running kumo crawl.
type startedCrawl struct {
	done   chan struct{}
	err    error // after done
	stderr lastBytes
}

// startPatience is how long a starting crawl may take to report an error that the page shows.
const startPatience = 5 * time.Second

// stopPatience is how long a crawl may take to end in order with the server.
const stopPatience = 30 * time.Second

// scheduleFile is the file with a crawl's schedule.
var scheduleFile = filepath.Join("state", "schedule.json")

// newCrawlStarter returns a starter for new crawls below a folder, which it creates.
func newCrawlStarter(ctx context.Context, root string, log *slog.Logger) (*crawlStarter, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return nil, fmt.Errorf("--allow-start: %w", err)
	}
	return &crawlStarter{program: program, root: root, ctx: ctx, log: log, now: time.Now,
		running: map[string]*startedCrawl{}}, nil
}

// crawls returns the folders of the crawls below the starter's folder.
func (s *crawlStarter) crawls() (dirs []string, err error) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(s.root, e.Name())
		if saved, err := folder.ReadSettings(dir); e.IsDir() && err == nil && len(saved) > 0 {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// Start implements ui.Starter.
func (s *crawlStarter) Start(ctx context.Context, r ui.StartRequest) (ui.Crawl, error) {
	dir := filepath.Join(s.root, r.Name)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return ui.Crawl{}, &ui.StartError{Message: fmt.Sprintf("%s exists: choose another name, or resume that crawl", dir)}
	}
	args := slices.Concat(settingArgs(r), []string{"--"}, r.Seeds)
	if err := s.start(ctx, dir, args); err != nil {
		return ui.Crawl{}, err // which the page shows
	}
	s.addDir(dir)
	return crawlIn(dir), nil
}

// Resume implements ui.Starter.
func (s *crawlStarter) Resume(ctx context.Context, dir string, r ui.StartRequest) error {
	return s.start(ctx, dir, settingArgs(r))
}

// settingArgs returns the flags for the settings that are given.
func settingArgs(r ui.StartRequest) (args []string) {
	for _, x := range [][2]string{{"scope", r.Scope}, {"depth", r.Depth}, {"include", r.Include}, {"exclude", r.Exclude},
		{"limit", r.Limit}, {"time-limit", r.TimeLimit}, {"delay", r.Delay}} {
		if x[1] != "" {
			args = append(args, "--"+x[0]+"="+x[1])
		}
	}
	if r.Embeds {
		args = append(args, "--embeds")
	}
	return args
}

// start starts kumo crawl, and waits until it runs or has failed.
func (s *crawlStarter) start(ctx context.Context, dir string, args []string) error {
	c, err := s.run(dir, args)
	if err != nil {
		return err
	}
	over, end := context.WithTimeout(ctx, startPatience)
	defer end()
	for range wait.Ticks(over, 50*time.Millisecond) {
		select {
		case <-c.done:
			if c.err == nil {
				return nil
			}
			return &ui.StartError{Message: cmp.Or(c.stderr.message(), c.err.Error())}
		default:
		}
		if _, err := os.Stat(filepath.Join(dir, folder.EndpointName)); err == nil {
			return nil
		}
	}
	return nil // it is slow: the page shows what becomes of it
}

// run starts kumo crawl.
func (s *crawlStarter) run(dir string, args []string) (*startedCrawl, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.running[dir]; c != nil {
		return nil, &ui.StartError{Message: "the crawl is running, or has not ended yet"}
	}
	c := &startedCrawl{done: make(chan struct{})}
	cmd := exec.CommandContext(s.ctx, s.program, slices.Concat([]string{"crawl", "--quiet", "--out=" + dir}, args)...)
	cmd.Stderr = &c.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopPatience
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.running[dir] = c
	s.ended.Go(func() {
		c.err = cmd.Wait()
		s.mu.Lock()
		delete(s.running, dir)
		s.mu.Unlock()
		close(c.done)
		if c.err != nil && s.ctx.Err() == nil {
			s.log.Warn("a crawl that was started here ended with an error", "folder", dir, "error",
				cmp.Or(c.stderr.message(), c.err.Error()))
		}
	})
	return c, nil
}

// addDir adds the folder of a crawl that may have a schedule.
func (s *crawlStarter) addDir(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs = append(s.dirs, dir)
}

// A scheduleRecord is the content of scheduleFile.
type scheduleRecord struct {
	Every string    `json:"every"`
	Next  time.Time `json:"next"`
}

// Schedule implements ui.Starter.
func (s *crawlStarter) Schedule(dir string) (x ui.Schedule, err error) {
	text, err := os.ReadFile(filepath.Join(dir, scheduleFile))
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	var r scheduleRecord
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil {
		x.Every, err = time.ParseDuration(r.Every)
		x.Next = r.Next
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", filepath.Join(dir, scheduleFile), err)
	}
	return x, err
}

// SetSchedule implements ui.Starter.
func (s *crawlStarter) SetSchedule(dir string, every time.Duration) error {
	name := filepath.Join(dir, scheduleFile)
	if every == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(scheduleRecord{every.String(), s.now().Add(every).UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return writePrivate(name, append(text, '\n'))
}

// scheduleInterval is the time between two checks of all schedules.
const scheduleInterval = 10 * time.Second

// follow starts crawls when their schedules say so, until the server ends. Then it waits for the crawls to end.
func (s *crawlStarter) follow() {
	for range wait.Ticks(s.ctx, scheduleInterval) {
		s.startDue()
	}
	s.ended.Wait()
}

// startDue starts the crawls whose time has come. The time of the next start is set before: a server that is killed
// does not start a crawl twice.
func (s *crawlStarter) startDue() {
	s.mu.Lock()
	dirs := slices.Clone(s.dirs)
	s.mu.Unlock()
	for _, dir := range dirs {
		x, err := s.Schedule(dir)
		switch {
		case err != nil:
			s.log.Warn("the schedule of a crawl cannot be read", "folder", dir, "error", err.Error())
			continue
		case x.Every == 0 || s.now().Before(x.Next) || folder.At(dir, vfs.OS).WantedByCrawl():
			continue
		}
		err = s.SetSchedule(dir, x.Every)
		if err == nil {
			_, err = s.run(dir, []string{"--due", "--recrawl=" + recrawlInterval(x.Every).String()})
		}
		if err != nil {
			s.log.Warn("a scheduled crawl did not start", "folder", dir, "error", err.Error())
			continue
		}
		s.log.Info("scheduled crawl", "folder", dir, "next", s.now().Add(x.Every).UTC().Format(time.RFC3339))
	}
}

// recrawlInterval returns after what time a page is due for a schedule. It is shorter than the time between starts:
// pages that the last run visited late would not be due at the next start otherwise.
func recrawlInterval(every time.Duration) time.Duration { return every - every/8 }

// lastBytes keeps the end of a program's output.
type lastBytes struct {
	mu   sync.Mutex // guards text
	text []byte
}

const maxLastBytes = 16 << 10

func (l *lastBytes) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if n := len(l.text); n > maxLastBytes {
		l.text = append(l.text[:0], l.text[n-maxLastBytes:]...)
	}
	return len(b), nil
}

// message returns the error message in the output: the lines from the last that begins with the program's name.
func (l *lastBytes) message() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	const mark = "kumo: "
	at := bytes.LastIndex(l.text, []byte("\n"+mark))
	if at < 0 && !bytes.HasPrefix(l.text, []byte(mark)) {
		return strings.TrimSpace(string(l.text))
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(l.text[max(at, 0):])), mark)
	text, _, _ = strings.Cut(text, "\nsee: kumo ") // the help of a command that the user does not type
	return strings.Join(strings.Fields(text), " ")
}
