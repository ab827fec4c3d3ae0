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

// ErrSafeMode says that HDFS is in safe mode, in which it can be read only.
var ErrSafeMode = errors.New("HDFS is in safe mode, in which nothing can be written")

// A remoteError is one that the NameNode said.
type remoteError interface {
	error
	hdfs.Error
}

// exception is the class of a remote error without its package, and the first line of what it says.
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

// isFolderConflict reports whether a folder has the name that a file was to get.
func isFolderConflict(says string) bool { return strings.Contains(says, "must both be directories") }

// isPermanent reports whether writing a file again would come to the same.
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

// isFull reports whether HDFS found no DataNode because none has room for a block, though some are alive.
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

// explain says in words what an error of HDFS means, and what can be done about it.
func (p *Place) explain(ctx context.Context, what, path string, err error) error {
	if err == nil {
		return nil
	}
	where := fmt.Sprintf("%s hdfs://%s%s", what, p.authority, path)
	class, says := exception(err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return advice.With(fmt.Errorf("%s: the user %s may not: %w", where, p.user, fs.ErrPermission),
			fmt.Sprintf("have HDFS's superuser run: hdfs dfs -mkdir -p %[1]s && hdfs dfs -chown %[2]s %[1]s", p.root,
				p.user))
	case class == "SafeModeException":
		return advice.With(place.Transient(fmt.Errorf("%s: %w", where, ErrSafeMode)),
			"it leaves it by itself some time after a start; hdfs dfsadmin -safemode get says whether, and "+
				"-safemode leave ends it")
	case strings.HasSuffix(class, "QuotaExceededException"):
		return advice.With(fmt.Errorf("%s: %s: %w", where, says, syscall.ENOSPC),
			"a folder above has a quota: hdfs dfs -count -q -h shows it, hdfs dfsadmin -clrSpaceQuota and "+
				"-clrQuota take it away")
	case class == "ParentNotDirectoryException":
		return advice.With(fmt.Errorf("%s: a file is where a folder is wanted: %s", where, says),
			"name another place, or move the file away")
	case isFolderConflict(says):
		return advice.With(fmt.Errorf("%s: a folder has that name", where), "name another place, or move the folder away")
	case hasNoTarget(says) && p.isFull(ctx, says):
		return advice.With(fmt.Errorf("%s: HDFS is full: %s: %w", where, says, syscall.ENOSPC),
			"make room or add DataNodes; hdfs dfsadmin -report says which have how much")
	case hasNoTarget(says):
		return advice.With(place.Transient(fmt.Errorf("%s: no DataNode takes a block: %s", where, says)),
			"hdfs dfsadmin -report says which DataNodes are alive")
	case class != "":
		return fmt.Errorf("%s: %s: %s", where, class, strings.TrimPrefix(says, class+": "))
	}
	return fmt.Errorf("%s: %w", where, err)
}

// unreachable says that no NameNode answers, and why that might be.
func unreachable(addresses []string, err error) error {
	err = fmt.Errorf("no NameNode answers at %s: %w", strings.Join(addresses, ", "), err)
	switch text := err.Error(); {
	case advice.Of(err) != "":
		return err
	case strings.Contains(text, "SIMPLE authentication is not enabled"), strings.Contains(text, "ERROR_UNAUTHORIZED"):
		return advice.With(err,
			"the cluster asks for Kerberos, and the configuration does not say so: name its folder by HADOOP_CONF_DIR")
	case strings.Contains(text, "safe mode"):
		return place.Transient(err)
	}
	return advice.With(place.Transient(err),
		"is the address that of fs.defaultFS in core-site.xml, and does HDFS run? kumo doctor hadoop looks")
}
