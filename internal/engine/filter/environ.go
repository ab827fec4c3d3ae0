package filter

import (
	"runtime"
	"slices"
	"strings"
)

// passed are the variables that a program gets.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV",
	"PYTHONPATH",
	"PYTHONHOME", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// passedOnWindows are those without which programs there do not run.
var passedOnWindows = []string{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP",
	"USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA"}

// Environ is what of an environment a program gets: what programs need to run, locales (LC_…), and what begins with
// FILTER_. A variable of kumo's, a proxy or a key of a place may have a password, and is none of its business.
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
