package filter

import (
	"runtime"
	"slices"
	"strings"
)

// passed lists the variables that a program gets.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV",
	"PYTHONPATH",
	"PYTHONHOME", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// passedOnWindows lists variables that programs need on Windows.
var passedOnWindows = []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP",
	"USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA"}

// Environ returns the part of an environment that a program gets: variables that programs need, locales (LC_…), and
// those that begin with FILTER_. It leaves out kumo's variables, proxies and keys of storage locations, which may
// contain passwords.
func Environ(all []string) []string {
	var kept []string
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		upper := name
		if runtime.GOOS == "windows" {
			upper = strings.ToUpper(name)
		}
		if slices.Contains(passed, upper) || strings.HasPrefix(upper, "LC_") || strings.HasPrefix(upper, "FILTER_") ||
			runtime.GOOS == "windows" && slices.Contains(passedOnWindows, upper) {
			kept = append(kept, v)
		}
	}
	return kept
}
