package netlab

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// sbin is where a system keeps the programs that change it; who is no administrator may not have that in PATH.
var sbin = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// tool is the path of a program, in PATH or in sbin.
func tool(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range sbin {
		if err == nil {
			return path, nil
		}
		path, err = exec.LookPath(filepath.Join(dir, name))
	}
	if err != nil {
		return "", fmt.Errorf("%s is neither in PATH nor in %v", name, sbin)
	}
	return path, nil
}
