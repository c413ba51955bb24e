#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tests the results of `cargo xtask dist`: installs, upgrades, removes and purges the package, unpacks the archive and the
# container image, and runs a server from each.
#
#   run.sh DIR                 DIR has the results for this machine
#   run.sh DIR development     they hold a development build, which is not static: the image is not run
#
# Everything runs in a temporary copy of this system's files, with its own network and processes. This needs root. Without
# root, the script runs only the steps that do not need it, and lists the skipped ones.
set -u

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
checkout=$(CDPATH='' cd -- "$here/../.." && pwd)
results=$(CDPATH='' cd -- "${1:?the folder with the results}" && pwd) || exit
kind=${2:-release}
# shellcheck source-path=SCRIPTDIR
. "$here/checks.sh"

# A value of the demo plant, read by a client of the program $1 from the server at $2.
plant_is_there() { "$1" read "$2" 'ns=2;s=Plant/Mode' | grep Good; }

# Whether a program needs no library and no loader.
is_static() { ! readelf --program-headers --wide "$1" | grep INTERP; }

# runs PROGRAM PREFIX…: a server started by PREFIX PROGRAM serves the demo plant, and shuts down on request.
runs() {
    program=$1
    shift
    "$@" "$program" serve --port 4850 >"$scratch/server" 2>&1 &
    server=$!
    retry 60 plant_is_there "$client" localhost:4850
    outcome=$?
    kill "$server"
    wait "$server"
    ended=$?
    [ "$outcome" = 0 ] && [ "$ended" = 0 ] || { echo "it ended with $ended"; cat "$scratch/server"; return 1; }
}

# A program without a feature refuses its destinations.
has_destinations() { # program
    mkdir -p "$scratch/destinations"
    cat >"$scratch/destinations/gateway.toml" <<END
[server]
bind = ["127.0.0.1:0"]
[identities]
anonymous = true
[[source]]
name = "signals"
type = "simulation"
[[tag]]
source = "signals"
name = "Level"
signal = "sine"
[[destination]]
name = "kafka"
type = "kafka"
brokers = ["localhost"]
[[destination]]
name = "nats"
type = "nats"
url = "nats://localhost"
[[destination]]
name = "parquet"
type = "parquet"
folder = "values"
END
    "$1" config check "$scratch/destinations/gateway.toml"
}

archive() {
    folder=$scratch/archive
    mkdir -p "$folder"
    check 'archive: unpacked below a prefix' tar -C "$folder" --strip-components=1 -xzf "$1"
    for file in bin/taktwerk share/man/man1/taktwerk-serve.1 share/bash-completion/completions/taktwerk \
        share/zsh/site-functions/_taktwerk share/fish/vendor_completions.d/taktwerk.fish \
        share/doc/taktwerk/THIRD-PARTY share/doc/taktwerk/LICENSE-MIT; do
        check "archive: has $file" test -s "$folder/$file"
    done
    check 'archive: the completions are good for bash' bash -n "$folder/share/bash-completion/completions/taktwerk"
    if [ "$kind" = release ]; then
        check 'archive: the program is static' is_static "$folder/bin/taktwerk"
    fi
    if [ "$kind" = release ]; then
        check 'archive: it has Kafka, NATS and Parquet' has_destinations "$folder/bin/taktwerk"
    fi
    check 'archive: the version is that of the file' sh -c "'$folder/bin/taktwerk' --version | grep -F '$version'"
    client=$folder/bin/taktwerk
    check 'archive: a server runs' runs "$folder/bin/taktwerk" env
}

# The program for another processor, in an emulator.
foreign_archive() {
    folder=$scratch/foreign
    mkdir -p "$folder"
    check 'aarch64: unpacked' tar -C "$folder" --strip-components=1 -xzf "$1"
    check 'aarch64: the program is static' is_static "$folder/bin/taktwerk"
    if emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64); then
        check 'aarch64: a server runs on an emulator' runs "$folder/bin/taktwerk" "$emulator"
    else
        left_out 'aarch64: a server runs' 'qemu-user-static is not installed'
    fi
}

image() {
    folder=$scratch/image
    mkdir -p "$folder/root"
    check 'image: unpacked' tar -C "$folder" -xf "$1"
    # The path of a manifest's only layer; every blob is named by its digest.
    digests() { (cd "$folder/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum --check --quiet); }
    check 'image: blobs have the digests that they are named by' digests
    layer=$folder/$(sed 's/.*"Layers":\["\([^"]*\)".*/\1/' "$folder/manifest.json")
    check 'image: the layer is unpacked' tar -C "$folder/root" --numeric-owner -xzpf "$layer"
    if command -v skopeo >/dev/null; then
        check 'image: skopeo reads it' skopeo inspect --override-os linux "oci-archive:$1:$version"
        check 'image: skopeo reads it as docker does' skopeo inspect "docker-archive:$1"
    else
        left_out 'image: skopeo reads it' 'skopeo is not installed'
    fi
    if [ "$kind" = development ]; then
        left_out 'image: a server runs in it' 'a development build is not static'
    elif [ "$(id -u)" != 0 ]; then
        left_out 'image: a server runs in it' 'it takes root to change to its file system'
    else
        check 'image: /data belongs to its user' test "$(stat -c %u:%g:%a "$folder/root/data")" = 10001:10001:750
        check 'image: a server runs in it' \
            runs /usr/bin/taktwerk chroot --userspec=10001:10001 "$folder/root"
    fi
}

# Runs a program like systemd: as the service's user, with an empty environment.
as_service='setpriv --reuid taktwerk --regid taktwerk --clear-groups env -i PATH=/usr/bin:/bin'

# The unit's commands, run one after the other as systemd does.
service() {
    file=/etc/taktwerk/server.toml
    users=/var/lib/taktwerk/users.toml
    $as_service taktwerk config check "$file" || return
    $as_service taktwerk serve --config "$file" >"$scratch/service" 2>&1 &
    server=$!
    steps "$file" "$users"
    outcome=$?
    kill "$server"
    wait "$server"
    ended=$?
    [ "$outcome" = 0 ] && [ "$ended" = 0 ] || { echo "it ended with $ended"; cat "$scratch/service"; return 1; }
}

# The certificate of the server, when the server accepts the connection of this client.
seen_server() {
    taktwerk read localhost i=2261 "$@" >&2
    ls "$scratch"/pki/rejected/certs 2>/dev/null | grep .
}

# Commands of an administrator while the server runs.
steps() {
    retry 60 taktwerk endpoints localhost || return
    echo 'a long pass phrase' | $as_service taktwerk user add olaf --role Operator --file "$2" --password-file - || return
    printf '[[role]]\nname = "Engineer"\nusers = ["olaf"]\n' >>"$1"
    $as_service taktwerk config apply "$1" | grep 'applied: role' || return
    echo 'a long pass phrase' >"$scratch/password"
    # An unknown client is refused; then its certificate is trusted, as documented.
    set -- --policy best --user olaf --password-file "$scratch/password" --pki "$scratch/pki"
    if taktwerk read localhost i=2261 "$@"; then
        echo 'the certificate of a stranger was taken'
        return 1
    fi
    $as_service taktwerk pki trust --pki /var/lib/taktwerk/pki /var/lib/taktwerk/pki/rejected/certs/* || return
    # The server reads its trust list every second. Then the client refuses the server, which it does not trust yet.
    retry 10 seen_server "$@" || return
    taktwerk pki trust --pki "$scratch/pki" "$scratch"/pki/rejected/certs/* || return
    retry 10 taktwerk read localhost i=2261 "$@"
}

package() {
    if command -v lintian >/dev/null; then
        check 'package: lintian finds no error' lintian --no-cfg --fail-on error "$1"
    else
        left_out 'package: lintian finds no error' 'lintian is not installed'
    fi
    check 'package: installed' dpkg --install "$1"
    check 'package: the program is found' taktwerk --version
    check 'package: the configuration has a folder' is_owned /etc/taktwerk taktwerk:taktwerk:750
    check 'package: what is written has a folder' is_owned /var/lib/taktwerk taktwerk:taktwerk:750
    check 'package: has manual pages' test -s /usr/share/man/man1/taktwerk-serve.1.gz
    if command -v systemd-analyze >/dev/null; then
        unit=$(ls /lib/systemd/system/taktwerk.service /usr/lib/systemd/system/taktwerk.service 2>/dev/null | head -n 1)
        check 'package: systemd understands the unit' systemd-analyze verify --man=no "$unit"
        # 0 is everything taken away, 10 nothing.
        check 'package: the service is confined' systemd-analyze security --offline=true --threshold=20 "$unit"
    else
        left_out 'package: systemd understands the unit' 'systemd is not installed'
    fi
    check 'package: a configuration is made' \
        $as_service taktwerk config init /etc/taktwerk/server.toml --state /var/lib/taktwerk
    check 'package: the service runs, takes a change over, ends' service
    check 'package: certificates are kept with the state' test -d /var/lib/taktwerk/pki
    check 'package: nothing is written beside the configuration' test "$(ls /etc/taktwerk)" = server.toml
    before=$(sha256sum /etc/taktwerk/server.toml /var/lib/taktwerk/users.toml)
    check 'package: installed over itself, as an upgrade' dpkg --install "$1"
    check 'package: an upgrade keeps configuration and users' \
        test "$before" = "$(sha256sum /etc/taktwerk/server.toml /var/lib/taktwerk/users.toml)"
    check 'package: removed' dpkg --remove taktwerk
    check 'package: removal keeps configuration and users' \
        test "$before" = "$(sha256sum /etc/taktwerk/server.toml /var/lib/taktwerk/users.toml)"
    check 'package: removal takes the program' is_missing /usr/bin/taktwerk
    check 'package: installed again' dpkg --install "$1"
    check 'package: purged' dpkg --purge taktwerk
    for path in /etc/taktwerk /var/lib/taktwerk /usr/bin/taktwerk /usr/share/doc/taktwerk /lib/systemd/system/taktwerk.service; do
        check "package: purging takes $path" is_missing "$path"
    done
}

own=$(uname -m)
version=$(basename "$(ls "$results"/taktwerk-*-"$own"-linux.tar.gz)" | sed "s/^taktwerk-\(.*\)-$own-linux.tar.gz\$/\1/")
own_package=$(ls "$results"/taktwerk_"$version"*_"$(dpkg --print-architecture 2>/dev/null)".deb 2>/dev/null)

# What runs a command apart from this system (copy.sh).
apart='unshare --mount --net --pid --cgroup --uts --ipc --fork --kill-child'

# The service under systemd. The copy's systemd is started in the background; what is tried enters the copy.
service_apart() {
    if [ ! -x /lib/systemd/systemd ]; then
        left_out 'service' 'systemd is not installed'
        return 0
    fi
    console=$(mktemp)
    $apart "$here/copy.sh" "$checkout" "$here/boot.sh" >"$console" 2>&1 </dev/null &
    copy=$!
    rounds=100
    until first=$(pgrep --parent "$copy") && enter="nsenter --target $first --all --root --wd" &&
        [ "$($enter systemctl is-system-running 2>/dev/null)" = running ]; do
        rounds=$((rounds - 1))
        if [ "$rounds" -le 0 ]; then
            left_out 'service' 'systemd does not start in a copy of this system'
            sed 's/^/        /' "$console"
            break
        fi
        sleep 0.2
    done
    outcome=0
    if [ "$rounds" -gt 0 ]; then
        $enter env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "$here/service.sh" "$own_package"
        outcome=$?
        [ "$outcome" = 0 ] || tail -n 30 "$console"
    fi
    kill -KILL "$copy" 2>/dev/null
    wait "$copy" 2>/dev/null
    rm -f "$console"
    return "$outcome"
}

if [ "${3:-}" != inside ] && [ "$(id -u)" = 0 ]; then
    $apart "$here/copy.sh" "$checkout" "$here/run.sh" "$results" "$kind" inside
    first_outcome=$?
    service_apart && [ "$first_outcome" = 0 ]
    exit
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check 'digests are those of the files' sh -c "cd '$results' && sha256sum --check --quiet SHA256SUMS"
if [ "$kind" = release ]; then
    materials=$results/taktwerk-$version-bom.cdx.json
    for crate in rusqlite rskafka async-nats parquet; do
        check "bill of materials: names $crate" grep -q "\"name\": \"$crate\"" "$materials"
    done
    # shellcheck disable=SC2016 # no shell expands it
    check 'bill of materials: no path of this machine' sh -c '! grep -F "file:///" "$1"' sh "$materials"
fi
archive "$results/taktwerk-$version-$own-linux.tar.gz"
image "$results/taktwerk-$version-$own-image.tar"
foreign=$results/taktwerk-$version-aarch64-linux.tar.gz
if [ "$own" != aarch64 ] && [ -f "$foreign" ]; then
    foreign_archive "$foreign"
fi
if [ "${3:-}" = inside ]; then
    package "$own_package"
else
    left_out 'package: installed, upgraded, removed' 'it takes root'
fi
echo "count: $passed passed, $failed failed"
[ "$failed" = 0 ]
