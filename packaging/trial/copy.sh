#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# copy.sh CHECKOUT COMMAND…: runs a command in a temporary copy of this system. Its files are in the upper layer of an overlay
# in memory, and it has its own network, processes and control groups. The folder CHECKOUT is shared with the copy.
# It is called by `unshare --mount --net --pid --cgroup --uts --ipc --fork --kill-child`, and needs root.
set -e

checkout=$1
shift
mount --make-rprivate /
mount -t tmpfs -o size=3g trial /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work trial /mnt/root
cd /mnt/root
mkdir -p "./$checkout"
mount --bind "$checkout" "./$checkout"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 trial run
mount -t tmpfs -o mode=755 trial dev
mkdir dev/pts dev/shm
for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mount -t tmpfs -o mode=1777 trial dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
exec chroot . "$@"
