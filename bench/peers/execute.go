package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// used has the resources that a process used.
type used struct {
	cpu  time.Duration // user and system
	wall time.Duration
	rss  int64 // maximum, in bytes
}

// execute runs a command to its end, or kills it after limit (0: no limit) and returns stopped.
func execute(ctx context.Context, argv []string, dir string, env []string, limit time.Duration) (u used, stopped bool,
	err error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return u, false, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), log, log
	begin := time.Now()
	err = cmd.Run()
	u.wall = time.Since(begin)
	if cmd.ProcessState == nil {
		return u, false, err
	}
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	u.rss = peakRSS(cmd.ProcessState)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return u, true, nil
	}
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		err = fmt.Errorf("%w\n%s", err, lastLines(string(text), 5))
	}
	return u, false, err
}

func peakRSS(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}
