#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The package's service under a real systemd: ready, reload, watchdog, crash, stop. Called by run.sh in a copy of this system
# whose first process is systemd.
#
#   service.sh PACKAGE
set -u

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$0")/checks.sh"

file=/etc/taktwerk/server.toml

property() { systemctl show taktwerk --property="$1" --value; }
is_active() { [ "$(property ActiveState)" = active ] || { systemctl status taktwerk --no-pager; return 1; }; }
# restarted OLD: another process than OLD serves.
restarted() { is_active && [ "$(property MainPID)" != "$1" ] && taktwerk endpoints localhost; }
# What systemd was told a moment ago arrives by itself.
says() { retry 5 status_has "$1"; }
status_has() { property StatusText; property StatusText | grep -q "$1"; }

reloads() {
    printf '[[role]]\nname = "Engineer"\nusers = ["olaf"]\n' >>"$file"
    systemctl reload taktwerk && says "$1"
}

# A file that is wrong: systemctl says so, and the server goes on as it was.
refuses() {
    cp "$file" "$file.good"
    echo 'nonsense = 1' >>"$file"
    systemctl reload taktwerk
    outcome=$?
    mv "$file.good" "$file"
    [ "$outcome" != 0 ] && is_active && taktwerk endpoints localhost
}

# inside COMMAND…: runs a command with the mounts of the service.
inside() { nsenter --target "$(property MainPID)" --mount --root --wd "$@"; }

# A program that takes 200 MB of memory after a while, and may have 100.
adds_program() {
    cat >>"$file" <<'END'
[[source]]
name = "limited"
type = "program"
command = ["sh", "-c", """
    echo >>/var/lib/taktwerk/starts
    sleep 5
    head -c 200M /dev/zero | tail
    echo >>/var/lib/taktwerk/ends
"""]
memory_max = 104857600
cpu_max = 0.5
[[tag]]
source = "limited"
name = "Value"
END
    systemctl reload taktwerk
}
limit() { cat "/sys/fs/cgroup$group/source-limited/$1"; }
is_limited() {
    [ "$(limit memory.max)" = 104857600 ] && [ "$(limit cpu.max)" = '50000 100000' ] && [ -n "$(limit cgroup.procs)" ]
}
is_ended() { [ "$(wc -l </var/lib/taktwerk/starts)" -gt 1 ] && [ ! -e /var/lib/taktwerk/ends ]; }
may_delegate() {
    inside setpriv --reuid taktwerk --regid taktwerk --clear-groups mkdir "/sys/fs/cgroup$group/trial" &&
        rmdir "/sys/fs/cgroup$group/trial"
}
# Not even root may in the file system of the service.
may_do_nothing_else() { ! inside mkdir /sys/fs/cgroup/system.slice/trial; }

check 'service: the package is installed' dpkg --install "$1"
check 'service: it waits for a configuration' sh -c '
    systemctl start taktwerk; [ "$(systemctl show taktwerk --property=ActiveState --value)" = inactive ]'
check 'service: a configuration is made' setpriv --reuid taktwerk --regid taktwerk --clear-groups \
    taktwerk config init "$file" --state /var/lib/taktwerk
# The minute of the unit is too long for a trial. The server asks itself twice in this time.
mkdir -p /etc/systemd/system/taktwerk.service.d
printf '[Service]\nWatchdogSec=4\n' >/etc/systemd/system/taktwerk.service.d/trial.conf
systemctl daemon-reload
check 'service: starts' systemctl start taktwerk
check 'service: clients connect as soon as it counts as started' taktwerk endpoints localhost
check 'service: says where it is' says opc.tcp
check 'service: runs as its user' sh -c 'ps -o user= -p "$(systemctl show taktwerk --property=MainPID --value)" | grep taktwerk'
check 'service: certificates are kept with the state' test -d /var/lib/taktwerk/pki/own
check 'service: a change of the configuration is applied' reloads 'read again'
check 'service: a wrong configuration is refused, and changes nothing' refuses
sleep 6
check 'service: the watchdog is fed' test "$(property NRestarts)" = 0
group=$(property ControlGroup)
check 'service: it may make control groups below its own' may_delegate
check 'service: it may make no other control groups' may_do_nothing_else
if grep -q memory "/sys/fs/cgroup$group/cgroup.controllers"; then
    check 'service: a source that is a program is added' adds_program
    check 'service: the program has its limits' retry 20 is_limited
    check 'service: a program that needs more memory is ended' retry 40 is_ended
else
    left_out 'service: programs have their limits' 'this system has no control groups of version 2 with memory limits'
fi
first=$(property MainPID)
kill -STOP "$first"
check 'service: a server that hangs is started again' retry 40 restarted "$first"
second=$(property MainPID)
kill -KILL "$second"
check 'service: a server that was killed is started again' retry 20 restarted "$second"
check 'service: stops in order' systemctl stop taktwerk
check 'service: its end counts as success' test "$(property Result)" = success
check 'service: purging takes it' dpkg --purge taktwerk
check 'service: systemd forgets it' sh -c '! systemctl cat taktwerk.service'
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
