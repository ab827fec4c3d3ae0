package filter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/advice"
)

// A program replaces a process: it reads questions and writes answers until it returns an error, which says how it
// ended.
type program func(in *bufio.Scanner, out io.Writer) error

// errHang makes a program hang until it is killed.
var errHang = errors.New("hangs")

// starter runs the n-th program for the n-th process, and the last one for all later ones.
func starter(programs ...program) func() (*process, error) {
	var n atomic.Int64
	return func() (*process, error) {
		run := programs[min(int(n.Add(1)), len(programs))-1]
		if run == nil {
			return nil, errors.New("no such program")
		}
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done, killed := make(chan struct{}), make(chan struct{})
		var how string
		var once sync.Once
		end := func() { once.Do(func() { close(killed); inR.Close(); outW.Close() }) }
		go func() {
			in := bufio.NewScanner(inR)
			in.Buffer(nil, 16<<20)
			err := run(in, outW)
			if errors.Is(err, errHang) {
				<-killed
			}
			how = fmt.Sprint("exit status 1: ", err)
			end()
			close(done)
		}()
		return &process{in: inW, out: bufio.NewReader(outR), killAll: end, done: done, exitState: func() string { return how }}, nil
	}
}

// answering chooses all points, and answers each question with the result of f.
func answering(f func(n int, id uint64, q *Question) (string, error)) program {
	return func(in *bufio.Scanner, out io.Writer) error {
		in.Scan()
		fmt.Fprintln(out, `{"points":["link","request","record"]}`)
		for n := 1; in.Scan(); n++ {
			var q struct {
				ID uint64
				Question
			}
			if err := json.Unmarshal(in.Bytes(), &q); err != nil {
				return err
			}
			line, err := f(n, q.ID, &q.Question)
			if err != nil {
				fmt.Fprint(out, line)
				return err
			}
			if line != "" {
				fmt.Fprintln(out, line)
			}
		}
		return nil
	}
}

// good drops URLs that end in an odd number.
func good(_ int, id uint64, q *Question) (string, error) {
	if n, err := strconv.Atoi(q.URL[strings.LastIndexByte(q.URL, '/')+1:]); err == nil && n%2 == 1 {
		return fmt.Sprintf(`{"id":%d,"drop":"odd"}`, id), nil
	}
	return fmt.Sprintf(`{"id":%d}`, id), nil
}

func questions(n int) (all []Question) {
	for i := range n {
		all = append(all, Question{Point: Link, URL: fmt.Sprintf("http://a.test/%d", i)})
	}
	return all
}

func open(t *testing.T, cfg Config, programs ...program) *Pool {
	t.Helper()
	cfg.Command, cfg.start = "./p", starter(programs...)
	p, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkGood(t *testing.T, answers []Answer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if (a.Drop == "odd") != (i%2 == 1) {
			t.Errorf("answer %d is %+v", i, a)
		}
	}
}

// Concurrent callers with many questions get the right answers in the right order, in whatever order the program
// answers.
func TestAnswersAreThoseOfTheirQuestions(t *testing.T) {
	seed := rand.Uint64()
	shuffled := func(in *bufio.Scanner, out io.Writer) error {
		dice := rand.New(rand.NewPCG(seed, 1))
		var held []string
		return answering(func(n int, id uint64, q *Question) (string, error) {
			line, err := good(n, id, q)
			held = append(held, line)
			if len(held) > 1 && dice.IntN(3) > 0 { // less than the whole window, so that more questions come
				return "", err
			}
			dice.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
			lines := strings.Join(held, "\n\n")
			held = nil
			return lines, err
		})(in, out)
	}
	synctest.Test(t, func(t *testing.T) {
		t.Logf("seed %d", seed)
		p := open(t, Config{Procs: 3, Default: Keep}, answering(good), shuffled)
		defer p.Close()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				answers, err := p.Ask(questions(300))
				checkGood(t, answers, err)
			})
		}
		all.Wait()
		if c := p.Counts().Points[Link]; c.Asked != 2400 || c.Dropped != 1200 || c.Unanswered != 0 {
			t.Errorf("counted: %+v", c)
		}
	})
}

// After any failure, a process is restarted, and another one answers its questions.
func TestAProcessThatFailsIsBegunAgain(t *testing.T) {
	for name, c := range map[string]struct {
		bad func(n int, id uint64, q *Question) (string, error)
		why string
	}{
		"crash": {func(int, uint64, *Question) (string, error) { return "", errors.New("boom") },
			"it ended: exit status 1: boom"},
		"silence": {func(int, uint64, *Question) (string, error) { return "", errHang }, "no answer within 10s"},
		"garbage": {func(int, uint64, *Question) (string, error) { return "hello", nil },
			`not an answer: it is not JSON: "hello"`},
		"no id": {func(int, uint64, *Question) (string, error) { return `{"drop":"x"}`, nil }, "answer without an id"},
		"other id": {func(_ int, id uint64, _ *Question) (string, error) { return `{"id":77}`, nil },
			"no question with the id 77"},
		"twice": {func(_ int, id uint64, _ *Question) (string, error) {
			return fmt.Sprintf("{\"id\":%d}\n{\"id\":%d}", id, id), nil
		}, "or it was answered"},
		"misspelt": {func(_ int, id uint64, _ *Question) (string, error) {
			return fmt.Sprintf(`{"id":%d,"dorp":"x"}`, id), nil
		}, `unknown field "dorp"`},
		"of another point": {func(_ int, id uint64, _ *Question) (string, error) {
			return fmt.Sprintf(`{"id":%d,"fields":{}}`, id), nil
		}, "only records have fields"},
		"huge": {func(int, uint64, *Question) (string, error) { return strings.Repeat("x", 2*MaxLine), nil },
			"a line has more than 1048576 bytes"},
		"half a line": {func(_ int, id uint64, _ *Question) (string, error) { return `{"id":`, errors.New("cut") },
			"exit status 1: cut"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				p := open(t, Config{Procs: 1, Log: func(s string) { said = append(said, s) }}, answering(c.bad), answering(good))
				answers, err := p.Ask(questions(20))
				checkGood(t, answers, err)
				p.Close()
				counts := p.Counts()
				if counts.Restarts() != 1 || !strings.Contains(counts.Trouble, c.why) {
					t.Errorf("begun again %d times, for %q; want %q", counts.Restarts(), counts.Trouble, c.why)
				}
				if len(said) == 0 || !strings.Contains(said[0], "filter ./p failed: "+counts.Trouble) {
					t.Errorf("said %q", said)
				}
			})
		})
	}
}

// A program that never reads delays callers no longer than the timeout.
func TestAProgramThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := func(in *bufio.Scanner, out io.Writer) error {
			in.Scan()
			fmt.Fprintln(out, `{"points":["link","request","record"]}`)
			return errHang
		}
		p := open(t, Config{Procs: 1}, deaf, answering(good))
		defer p.Close()
		begun := time.Now()
		answers, err := p.Ask(questions(5))
		checkGood(t, answers, err)
		if took := time.Since(begun); took != DefaultTimeout+firstPause {
			t.Errorf("it took %v", took)
		}
	})
}

// A question that crashes every process gets the default; questions sent together with it get their answers.
func TestAQuestionThatKillsTakesNoOtherWithIt(t *testing.T) {
	deadly := func(n int, id uint64, q *Question) (string, error) {
		if strings.HasSuffix(q.URL, "/13") {
			return "", errors.New("poisoned")
		}
		return good(n, id, q)
	}
	for _, d := range Defaults {
		t.Run(d, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said strings.Builder
				p := open(t, Config{Procs: 2, Default: Default(d), Log: func(s string) { said.WriteString(s + "\n") }},
					answering(deadly))
				answers, err := p.Ask(questions(200))
				p.Close()
				if c := p.Counts(); c.Crashed != 2 || c.Points[Link].Unanswered != 1 {
					t.Errorf("counted %+v, %+v", c, c.Points[Link])
				}
				const name = "filter ./p has not answered for link http://a.test/13, asked twice: "
				if Default(d) == Stop {
					if err == nil || err.Error() != name+"it ended: exit status 1: poisoned" || !strings.Contains(advice.Of(err),
						"--filter-default") {
						t.Errorf("the error is %v (%s)", err, advice.Of(err))
					}
					return
				}
				if !strings.Contains(said.String(), name) {
					t.Errorf("said %q", said.String())
				}
				want := map[Default]string{Keep: "", Drop: "no answer: it ended: exit status 1: poisoned"}[Default(d)]
				if got := answers[13].Drop; got != want {
					t.Errorf("answered %q, want %q", got, want)
				}
				answers[13].Drop = "odd"
				checkGood(t, answers, err)
			})
		})
	}
}

// failing are programs that answer no or hardly any questions after their first line.
var failing = map[string]struct {
	run   program
	why   string        // part of the error
	first time.Duration // until the first question gets the default
}{
	"exits": {answering(func(int, uint64, *Question) (string, error) { return "", errors.New("boom") }),
		"asked twice: it ended: exit status 1: boom", firstPause},
	"hangs": {answering(func(int, uint64, *Question) (string, error) { return "", errHang }),
		"asked twice: no answer within 10s", 2*DefaultTimeout + firstPause},
	"garbage": {answering(func(_ int, id uint64, _ *Question) (string, error) {
		return "debug: \x1b[1m" + strings.Repeat("x", 1000) + fmt.Sprintf("\n{\"id\":%d}", id), nil
	}), "asked twice: not an answer: it is not JSON: \"debug: \uFFFD[1mxxx", firstPause},
	"half a line": {answering(func(_ int, id uint64, _ *Question) (string, error) {
		return fmt.Sprintf(`{"id":%d}`, id), errHang
	}), `asked twice: no answer within 10s; it wrote "{\"id\":1}" without a line break`, 2*DefaultTimeout + firstPause},
	"garbage after each answer": {answering(func(_ int, id uint64, _ *Question) (string, error) {
		return fmt.Sprintf("{\"id\":%d}\ndebug", id), nil
	}), `not an answer: it is not JSON: "debug"`, 3 * time.Second},
}

// With Stop as the default, the first question without an answer ends the pool: no other question is tried, and
// processes are not restarted for each.
func TestStopEndsAtTheFirstQuestionWithoutAnAnswer(t *testing.T) {
	for name, c := range failing {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := open(t, Config{Procs: 1}, c.run)
				defer p.Close()
				begun, errs := time.Now(), make(chan error)
				for range 3 {
					go func() {
						_, err := p.Ask(questions(60))
						errs <- err
					}()
				}
				for range 3 {
					err := <-errs
					if _, is := errors.AsType[*UnansweredError](err); !is || !strings.Contains(err.Error(), c.why) ||
						!strings.HasPrefix(err.Error(), "filter ./p has not answered for link http://a.test/") ||
						len(err.Error()) > 600 || !strings.Contains(advice.Of(err), "--filter-default keep") {
						t.Errorf("the error is %v (%s), want %q", err, advice.Of(err), c.why)
					}
				}
				if took := time.Since(begun); took > c.first {
					t.Errorf("it took %v", took)
				}
				if _, err := p.Ask(questions(60)); err == nil || time.Since(begun) > c.first {
					t.Errorf("asked later: %v, after %v", err, time.Since(begun))
				}
				if n := p.Counts().Points[Link].Unanswered; n != 1 {
					t.Errorf("%d questions have no answer", n)
				}
			})
		})
	}
}

// With the other defaults, the time that a failing program costs depends on its pauses, not on the number of links.
func TestPausesDoNotMultiplyByTheNumberOfLinks(t *testing.T) {
	for name, c := range failing {
		for _, d := range []Default{Keep, Drop} {
			t.Run(name+", "+string(d), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := open(t, Config{Procs: 2, Default: d}, c.run)
					defer p.Close()
					begun := time.Now()
					for range 10 {
						answers, err := p.Ask(questions(500))
						if err != nil {
							t.Fatal(err)
						}
						if last := answers[499].Drop; (last != "") != (d == Drop) {
							t.Fatalf("answered %q", last)
						}
					}
					// five failures in a row, then none until a pause has passed
					if took := time.Since(begun); took > 5*DefaultTimeout+3*time.Second {
						t.Errorf("it took %v", took)
					}
					if c := p.Counts(); c.Restarts() > 10 || c.Points[Link].Asked != 5000 {
						t.Errorf("counted %+v, %+v", c, c.Points[Link])
					}
				})
			})
		}
	}
}

// A program that works again is used again after its pause.
func TestAProgramThatWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := failing["exits"].run
		p := open(t, Config{Procs: 1, Default: Keep}, bad, bad, bad, bad, bad, answering(good))
		defer p.Close()
		if _, err := p.Ask(questions(60)); err != nil || p.Counts().Points[Link].Dropped != 0 {
			t.Fatalf("%v; counted %+v", err, p.Counts().Points[Link])
		}
		time.Sleep(2 * time.Second)
		answers, err := p.Ask(questions(60))
		checkGood(t, answers, err)
	})
}

// A missing program is retried with growing pauses, and no caller waits forever.
func TestAProgramThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{Procs: 1, Default: Keep}, answering(func(int, uint64, *Question) (string, error) {
			return "", errors.New("last one")
		}), nil)
		for range 15 {
			begun := time.Now()
			if _, err := p.Ask(questions(1)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 2*lastPause {
				t.Errorf("after %v", took)
			}
		}
		starts := p.Counts().Crashed
		time.Sleep(time.Hour)
		if more := p.Counts().Crashed - starts; more < 100 || more > 130 {
			t.Errorf("tried %d times in an hour", more)
		}
		p.Close()
	})
}

// A slow program gets few questions in advance, so that it is not taken for a hanging one.
func TestASlowProgramIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{Procs: 2, Timeout: time.Second}, answering(func(n int, id uint64, q *Question) (string, error) {
			time.Sleep(100 * time.Millisecond)
			return good(n, id, q)
		}))
		defer p.Close()
		answers, err := p.Ask(questions(300))
		checkGood(t, answers, err)
		if c := p.Counts(); c.Restarts() != 0 {
			t.Errorf("begun again: %+v", c)
		}
	})
}

// A program that forgets a question but answers others times out, too.
func TestAForgottenQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, Config{Procs: 1}, answering(func(n int, id uint64, q *Question) (string, error) {
			time.Sleep(time.Millisecond)
			if n == 30 {
				return "", nil
			}
			return good(n, id, q)
		}), answering(good))
		defer p.Close()
		stop := make(chan struct{})
		var others sync.WaitGroup
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					if _, err := p.Ask(questions(2)); err != nil {
						t.Error(err)
					}
				}
			}
		})
		answers, err := p.Ask(questions(100))
		close(stop)
		others.Wait()
		checkGood(t, answers, err)
		if c := p.Counts(); c.Late != 1 {
			t.Errorf("counted %+v", c)
		}
	})
}

// A stop does not wait for a hanging program.
func TestNobodyIsHeldUpAtTheEnd(t *testing.T) {
	mute := answering(func(int, uint64, *Question) (string, error) { return "", errHang })
	deaf := func(in *bufio.Scanner, out io.Writer) error {
		in.Scan()
		fmt.Fprintln(out, `{"points":["link","request","record"]}`)
		return errHang
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p, err := Open(ctx, Config{Command: "./p", Procs: 2, start: starter(mute, deaf)})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := p.Ask(questions(1000)); !errors.Is(err, context.Canceled) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		stop()
		begun := time.Now()
		all.Wait()
		if took := time.Since(begun); took > stopDelay+patience {
			t.Errorf("it took %v", took)
		}
		if _, err := p.Ask(questions(3)); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		p.Close()
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain.py")
	if err := os.WriteFile(plain, []byte("print()"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"":                "the command is empty",
		"./nosuch --x":    "no such file",
		"nosuch-anywhere": "executable file not found",
		"'a":              "a quote is not closed",
		plain: "permission denied: make it executable with chmod +x, or name its interpreter, as in " +
			"python3 " + plain,
		"false":                          "it ended before its first line: exit status 1",
		"sh -c 'echo x'":                 `the first line is not like {"points":["link"]}: it is not JSON: "x"`,
		"sh -c 'echo {}'":                "it chooses no point",
		"echo '{\"points\":[\"lnk\"]}'":  `unknown point "lnk": use link, request, record`,
		"sh -c 'echo no jq >&2; exit 7'": "exit status 7; last output: no jq",
	} {
		_, err := Open(t.Context(), Config{Command: command, Env: Environ(os.Environ()), Procs: 1})
		if err == nil || !advice.IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", command, err, want)
		}
	}
}

func TestWords(t *testing.T) {
	for command, want := range map[string]string{
		`a b  c`: "a|b|c", ` 'a b' "c d"e\ f `: "a b|c de f", `a ''`: "a|", `"a\"b" 'c\'`: `a"b|c\`, "a\tb\n": "a|b",
	} {
		words, err := Words(command)
		if err != nil || strings.Join(words, "|") != want {
			t.Errorf("%s is %q (%v), want %s", command, words, err, want)
		}
	}
	for _, bad := range []string{"", " ", "'", `"a`, `a\`, "''"} {
		if words, err := Words(bad); err == nil {
			t.Errorf("%s is %q", bad, words)
		}
	}
}

func TestEnviron(t *testing.T) {
	got := strings.Join(Environ([]string{"PATH=/bin", "KUMO_PASSWORD=x", "HTTP_PROXY=http://me:x@p",
		"AWS_SECRET_ACCESS_KEY=x",
		"LC_ALL=C", "FILTER_DB=y", "HOME=/", "SSH_AUTH_SOCK=x"}), " ")
	if got != "PATH=/bin LC_ALL=C FILTER_DB=y HOME=/" {
		t.Error(got)
	}
}

func TestPlain(t *testing.T) {
	for s, want := range map[string]string{"a\nb\tc": "a b c", "a\x1b[31mb": "a\uFFFD[31mb", "a\u202Eb": "a\uFFFDb",
		"\xff": "\uFFFD",
		"ä":    "ä", "12345678901": "1234567…", "äääääää": "ääää…"[:len("äää")] + "…"} {
		if got := Plain(s, 10); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// Answers parsed from arbitrary bytes are within their limits, and safe to display and store.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{`{"id":1}`, `{"id":1,"drop":"x\u001b"}`, `{"id":1,"drop":true}`,
		`{"id":2,"url":"/x","rank":2}`,
		`{"id":3,"header":{"A":"b"}}`, `{"id":4,"fields":{"a":[1,{"b":null}]}}`, `{"points":["link"],"want":["html"]}`,
		`{"id":-1}`,
		`{"id":1}{"id":2}`, "\n\n{\"id\":5}\n", `{"id":1,"rank":1e999}`, `{"id":1,"fields":{"a":"` + "\xff" + `"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		proc := &process{out: bufio.NewReaderSize(bytes.NewReader(append(data, '\n')), 16)}
		for {
			line, err := proc.line()
			if err != nil {
				return
			}
			if c, err := parseChoice(line); err == nil && (len(c.Points) == 0 || !c.Asks(c.Points[0])) {
				t.Errorf("%q is a choice of nothing", line)
			}
			if id, is := parsePlainYes(line); is {
				var r reply
				if err := unmarshal(line, &r); err != nil || r.ID == nil || *r.ID != id {
					t.Errorf("%q is taken for a yes to %d (%v)", line, id, err)
				}
			}
			_, a, err := parseReply(line)
			if err != nil {
				if len(err.Error()) > 4000 || strings.ContainsAny(err.Error(), "\x1b\n\x00") {
					t.Errorf("the error is %q", err)
				}
				continue
			}
			if len(a.Drop) > MaxReason || strings.ContainsAny(a.Drop, "\x1b\n\x00\x7f") || a.Rank < 0 || a.Rank > maxRank {
				t.Errorf("%q is %+v", line, a)
			}
			if a.Fields != nil && (len(a.Fields) > 3*MaxFields || !json.Valid(a.Fields) || bytes.ContainsAny(a.Fields, "\n\r")) {
				t.Errorf("%q has the fields %q", line, a.Fields)
			}
		}
	})
}
