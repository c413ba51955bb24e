#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Starts systemd as the first process of a copy of this system (copy.sh), with only the units that a service needs.
set -e

# Control groups of version 2, also where this system uses version 1 for memory and CPU: the service needs them for the programs of
# sources. Without these controllers, only its rights are tried.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Services that this system starts automatically are not wanted in the copy.
for unit in systemd-udevd systemd-logind systemd-networkd systemd-resolved systemd-remount-fs; do
    ln -sf /dev/null "/etc/systemd/system/$unit.service"
done
: >/etc/fstab
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=basic.target --log-target=console --log-level=notice --show-status=no
