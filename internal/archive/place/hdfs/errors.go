package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/colinmarc/hdfs/v2"

	"kumo/internal/archive/place"
	"kumo/internal/base/advice"
)

// ErrSafeMode means that HDFS is in safe mode, and therefore read-only.
var ErrSafeMode = errors.New("HDFS is in safe mode and read-only")

// A remoteError is an error reply of the NameNode.
type remoteError interface {
	error
	hdfs.Error
}

// exception returns the class of a remote error without its package, and the first line of its message.
func exception(err error) (class, says string) {
	remote, is := errors.AsType[remoteError](err)
	if !is {
		return "", ""
	}
	class = remote.Exception()
	return class[strings.LastIndexByte(class, '.')+1:], firstLine(remote.Message())
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// hasNoTarget reports whether the NameNode found no DataNode for a block.
func hasNoTarget(says string) bool {
	return strings.Contains(says, "could only be written to 0 of") || strings.Contains(says,
		"could only be replicated to 0 nodes")
}

// isFolderConflict reports whether a folder has the target name of a file.
func isFolderConflict(says string) bool { return strings.Contains(says, "must both be directories") }

// isPermanent reports whether writing a file again would fail again.
func (p *Place) isPermanent(ctx context.Context, err error) bool {
	class, says := exception(err)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrInvalid), errors.Is(err, fs.ErrExist), errors.Is(err,
		fs.ErrClosed):
		return true
	case errors.Is(err, errSource), errors.Is(err, place.ErrDigest):
		return true
	case class == "SafeModeException", strings.HasSuffix(class, "QuotaExceededException"), isFolderConflict(says),
		class == "PathComponentTooLongException":
		return true
	case hasNoTarget(says):
		return p.isFull(ctx, says)
	}
	return false
}

// isFull reports whether HDFS found no DataNode because no live one has space for a block.
func (p *Place) isFull(ctx context.Context, says string) bool {
	full := false
	err := p.do(ctx, func(client *hdfs.Client) error {
		stat, err := client.StatFs()
		if err != nil {
			return err
		}
		defaults, err := client.ServerDefaults()
		full = stat.Remaining < uint64(max(defaults.BlockSize, 1))
		return err
	})
	return err == nil && full && !strings.Contains(says, "There are 0 datanode(s) running")
}

// explain adds to an error of HDFS what it means and how to fix it.
func (p *Place) explain(ctx context.Context, what, path string, err error) error {
	if err == nil {
		return nil
	}
	where := fmt.Sprintf("%s hdfs://%s%s", what, p.authority, path)
	class, says := exception(err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return advice.With(fmt.Errorf("%s: the user %s has no permission: %w", where, p.user, fs.ErrPermission),
			fmt.Sprintf("run as HDFS's superuser: hdfs dfs -mkdir -p %[1]s && hdfs dfs -chown %[2]s %[1]s", p.root,
				p.user))
	case class == "SafeModeException":
		return advice.With(place.Transient(fmt.Errorf("%s: %w", where, ErrSafeMode)),
			"HDFS leaves it some time after its start; hdfs dfsadmin -safemode get shows the state, and "+
				"-safemode leave ends it")
	case strings.HasSuffix(class, "QuotaExceededException"):
		return advice.With(fmt.Errorf("%s: %s: %w", where, says, syscall.ENOSPC),
			"a parent folder has a quota: hdfs dfs -count -q -h shows it, hdfs dfsadmin -clrSpaceQuota and "+
				"-clrQuota remove it")
	case class == "ParentNotDirectoryException":
		return advice.With(fmt.Errorf("%s: a file has the name of a folder: %s", where, says),
			"use another location, or rename the file")
	case isFolderConflict(says):
		return advice.With(fmt.Errorf("%s: a folder has that name", where), "use another location, or rename the folder")
	case hasNoTarget(says) && p.isFull(ctx, says):
		return advice.With(fmt.Errorf("%s: HDFS is full: %s: %w", where, says, syscall.ENOSPC),
			"free some space or add DataNodes; hdfs dfsadmin -report shows the space on each")
	case hasNoTarget(says):
		return advice.With(place.Transient(fmt.Errorf("%s: no DataNode accepts a block: %s", where, says)),
			"hdfs dfsadmin -report shows which DataNodes are alive")
	case class != "":
		return fmt.Errorf("%s: %s: %s", where, class, strings.TrimPrefix(says, class+": "))
	}
	return fmt.Errorf("%s: %w", where, err)
}

// unreachable returns the error of a NameNode that does not respond, with possible reasons.
func unreachable(addresses []string, err error) error {
	err = fmt.Errorf("no NameNode responds at %s: %w", strings.Join(addresses, ", "), err)
	switch text := err.Error(); {
	case advice.Of(err) != "":
		return err
	case strings.Contains(text, "SIMPLE authentication is not enabled"), strings.Contains(text, "ERROR_UNAUTHORIZED"):
		return advice.With(err,
			"the cluster requires Kerberos, and the configuration does not have it: set HADOOP_CONF_DIR to its folder")
	case strings.Contains(text, "safe mode"):
		return place.Transient(err)
	}
	return advice.With(place.Transient(err),
		"check fs.defaultFS in core-site.xml and that HDFS runs: kumo doctor hadoop")
}
