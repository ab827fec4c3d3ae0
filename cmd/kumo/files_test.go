package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands of stories that change files.

// cutCmd takes bytes off a file's end.
func cutCmd(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()-n))
}

// appendCmd adds text to a file; \n in it ends a line.
func appendCmd(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteString(strings.ReplaceAll(args[1], `\n`, "\n"))
	ts.Check(err)
	ts.Check(f.Close())
}

// moveCmd moves the files of a pattern into a folder.
func moveCmd(ts *testscript.TestScript, _ bool, args []string) {
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, name := range names {
		ts.Check(os.Rename(name, filepath.Join(ts.MkAbs(args[1]), filepath.Base(name))))
	}
}
