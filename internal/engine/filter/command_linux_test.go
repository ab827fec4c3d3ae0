package filter

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a process that can be waited for even if it is no child.
type watched struct{ fd int }

func watch(t *testing.T, pid string) watched {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(n, 0)
	if err != nil {
		t.Fatalf("%d: %v", n, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return watched{fd}
}

// ends reports whether the process ends within ten seconds.
func (w watched) ends() bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, 10_000)
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// stubborn prints its pid and that of a child. Neither ends by itself.
const stubborn = `trap "" HUP TERM PIPE; sleep 1000 & echo $$ $! >&2; echo "{\"points\":[\"link\"]}"; while :; do read -r x; sleep 1000; done`

// When the pool is closed, all processes started by a program are gone, and there is no zombie.
func TestCloseEndsTheWholeGroup(t *testing.T) {
	pids := make(chan string, 1)
	p, err := Open(t.Context(), Config{Command: "sh -c '" + stubborn + "'", Procs: 1, Env: Environ(os.Environ()),
		Memory: DefaultMemory,
		Log: func(line string) {
			if _, said, ok := strings.Cut(line, " says: "); ok {
				select {
				case pids <- said:
				default:
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	one, two, _ := strings.Cut(<-pids, " ")
	parent, child := watch(t, one), watch(t, two)
	limits, err := os.ReadFile("/proc/" + one + "/limits")
	if err != nil || !strings.Contains(string(limits), fmt.Sprint("Max address space         ", int64(DefaultMemory))) {
		t.Errorf("the limits are %s (%v)", limits, err)
	}
	p.Close()
	if !parent.ends() || !child.ends() {
		t.Error("the process, or its child, has outlived the pool")
	}
	if _, err := os.Stat("/proc/" + one); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("/proc/%s is there: %v", one, err)
	}
}

// A process that exceeds its memory fails like any program without memory.
func TestMemoryIsBounded(t *testing.T) {
	const greedy = `echo "{\"points\":[\"link\"]}"; read -r x; read -r x; x=0123456789abcdef; ` +
		`while [ ${#x} -lt 300000000 ]; do x=$x$x; done; echo "{\"id\":1}"`
	p, err := Open(t.Context(), Config{Command: "sh -c '" + greedy + "'", Procs: 1, Default: Keep,
		Env:    Environ(os.Environ()),
		Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Ask(questions(1)); err != nil {
		t.Fatal(err)
	}
	if c := p.Counts(); c.Crashed != 2 {
		t.Errorf("counted %+v", c)
	}
}

// helperEnv makes the test binary open a pool and wait to be killed.
const helperEnv = "KUMO_TEST_FILTER_HELPER"

// When kumo is killed, its filters end.
func TestAKillOfKumoEndsItsFilters(t *testing.T) {
	if os.Getenv(helperEnv) != "" {
		_, err := Open(t.Context(), Config{Command: `sh -c 'echo $$ >&2; echo "{\"points\":[\"link\"]}"; exec sleep 100'`,
			Procs: 1,
			Env:   Environ(os.Environ()), Log: func(line string) { fmt.Println("\n" + line) }})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // until it is killed
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, pid, ok := strings.Cut(lines.Text(), " says: "); ok {
			one := watch(t, strings.Fields(pid)[0])
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if !one.ends() {
				t.Error("the filter has outlived who asked it")
			}
			_ = cmd.Wait() // reports that it was killed
			return
		}
	}
	t.Error("the helper has not begun: ", cmd.Wait())
}
