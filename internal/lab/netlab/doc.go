// Package netlab simulates a network of hosts on one machine, for tests of processes that communicate. Each host is a
// Linux network namespace with its own address. Links between hosts can be cut, throttled, delayed and made to lose
// packets.
//
// It needs root, the programs ip and tc (iproute2), and namespaces, veth, bridges and tbf in the kernel.
//
// # Paths
//
// All hosts are attached to one bridge. The sender's neighbor table entry for the receiver's address selects the path
// of the packets:
//
//   - The receiver's own MAC address: direct delivery.
//   - An unused MAC address: packets are lost silently, as on a cut cable.
//   - The MAC address of the proxy: this process reads the packets from a port of the bridge, and writes them back
//     later or never.
//
// So a partition can affect one direction only. Programs need not know of the proxy, whatever protocol they use. The
// proxy matches both addresses of a packet. A host with many addresses can therefore stand for many hosts, each at its
// own distance. The proxy is one thread and takes about 1 % of a processor for 1,000 packets per second.
//
// Connections between hosts use TCP Reno congestion control, whatever the machine's setting is. A host can also be
// attached to another host that is its router, as computers at home are.
//
// # Resource limits
//
// The resources of a host's processes can be limited. Control groups limit processor time and memory. A disk is a file
// on its own block device, with a limit in bytes per second. These limits need control groups version 1, losetup and
// mkfs.ext4.
//
// # Cleanup
//
// A lab leaves nothing behind. Processes end with the process that started them. The next run removes the namespaces,
// control groups and disks of a run that was killed.
package netlab
