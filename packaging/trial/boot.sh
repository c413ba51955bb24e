#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Starts systemd as the first process of a copy of this system (copy.sh), with nothing but what a service needs.
set -e

mount -t tmpfs -o mode=755 trial /sys/fs/cgroup
if grep -q 'name=systemd' /proc/1/cgroup; then
    mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
else
    umount /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
# Whatever this system starts by itself has no business in the copy.
for unit in systemd-udevd systemd-logind systemd-networkd systemd-resolved systemd-remount-fs; do
    ln -sf /dev/null "/etc/systemd/system/$unit.service"
done
: >/etc/fstab
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=basic.target --log-target=console --log-level=notice --show-status=no
