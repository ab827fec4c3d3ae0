package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tools builds or finds programs, and keeps them in a folder.
type tools struct {
	cache string
	here  string // folder of this module
	root  string // folder of kumo's module
}

func newTools(ctx context.Context, cache string) (t tools, err error) {
	if t.cache, err = filepath.Abs(cache); err != nil {
		return t, err
	}
	if err := os.MkdirAll(t.cache, 0o755); err != nil {
		return t, err
	}
	for module, dir := range map[string]*string{"kumo/bench/peers": &t.here, "kumo": &t.root} {
		out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			return t, fmt.Errorf("find module %s: run this in its folder: %w", module, err)
		}
		*dir = strings.TrimSpace(string(out))
	}
	return t, nil
}

// build compiles a package of the module in dir and returns the program's path.
func (t tools) build(ctx context.Context, name, dir, pkg string) (string, error) {
	path := filepath.Join(t.cache, name)
	return path, quietly(ctx, dir, nil, "go", "build", "-o", path, pkg)
}

// install builds a version of a program with go install, unless it is in the cache. If that fails, it uses a program in
// PATH.
func (t tools) install(ctx context.Context, name, pkg string) (string, error) {
	path := filepath.Join(t.cache, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	err := quietly(ctx, t.cache, []string{"GOBIN=" + t.cache}, "go", "install", pkg)
	if own, none := exec.LookPath(name); err != nil && none == nil {
		return own, nil
	}
	return path, err
}

// pinned builds a program from a version of a module, unless it is in the cache. It uses a temporary module, because go
// install needs the list of versions, which the module proxy does not have for every module.
func (t tools) pinned(ctx context.Context, module, version, pkg string) (string, error) {
	path := filepath.Join(t.cache, filepath.Base(pkg)+"-"+version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	dir, err := os.MkdirTemp(t.cache, "module-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	mod := fmt.Sprintf("module pinned\n\nrequire %s %s\n", module, version)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return "", err
	}
	return path, quietly(ctx, dir, nil, "go", "build", "-mod=mod", "-o", path, module+"/"+pkg)
}

// debian finds a program of a Debian package. Root installs the package if it is missing.
func (t tools) debian(ctx context.Context, name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return "", fmt.Errorf("%s is not on this machine and cannot be installed", name)
	}
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := quietly(ctx, t.cache, env, "apt-get", "install", "-y", name); err != nil {
		return "", err
	}
	return exec.LookPath(name)
}

// quietly runs a command and shows its output only if it fails.
func quietly(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, lastLines(string(out), 5))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
