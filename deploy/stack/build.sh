#!/usr/bin/env bash
# Makes the root filesystem that apps run in and are built in: Debian 12 with a Java runtime, small, with a user of its own.
#
#   deploy/stack/build.sh DIRECTORY     needs root, and Debian's packages in reach
#
# What it installs is Debian's newest. To take in Debian's fixes on a machine that has built this before, set the date
# below: it is part of the name under which deploy/image keeps the result.
# Refreshed: 2026-11-15
set -euo pipefail

root=${1:?Say which directory to make: deploy/stack/build.sh DIRECTORY}
mirror=${PROA_DEBIAN_MIRROR:-http://deb.debian.org/debian}
user=2000 # deploy/image says the same number in the images' settings
packages=(bash ca-certificates curl openjdk-17-jre-headless procps unzip)

[ "$(id -u)" = 0 ] || {
	echo "Making a root filesystem needs root. Run this again as root." >&2
	exit 1
}
"$(dirname "$0")/../../engines/apt.sh" debootstrap >&2

# In namespaces of its own, so that whatever Debian's scripts mount or start is gone at the end, come what may.
if [ "${PROA_STACK_INSIDE:-}" != yes ]; then
	exec env PROA_STACK_INSIDE=yes unshare --mount --pid --fork --kill-child "$0" "$@"
fi

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 SOURCE_DATE_EPOCH=1
mkdir -p "$root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
	"$@" >>"$log" 2>&1 </dev/null && return
	tail -n 20 "$log" >&2
	echo "Could not make the root filesystem. Read the lines above, see that $mirror is in reach, and run this again." >&2
	exit 1
}
inside() { quietly chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH=1 "$@"; }

quietly debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror"

# debootstrap knows one suite. Fixes come from two more.
cat >"$root/etc/apt/sources.list" <<END
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb $mirror-security bookworm-security main
END
# An image keeps no page of a manual, no translation, and of the documents what the licences ask for.
cat >"$root/etc/dpkg/dpkg.cfg.d/small" <<'END'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
END
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc" # the Java runtime's install script starts Java, which wants it
inside apt-get -q update
inside apt-get -qy dist-upgrade
inside apt-get -qy install --no-install-recommends "${packages[@]}"
umount "$root/proc"

inside groupadd --gid "$user" vcap
inside useradd --uid "$user" --gid "$user" --create-home --shell /bin/bash vcap

# What only this machine or this hour is part of.
find "$root/usr/share/doc" ! -type d ! -name copyright -delete
find "$root/usr/share/doc" -depth -type d -empty -delete
rm -rf "$root"/usr/share/{man,info,locale}/* "$root"/var/lib/apt/lists/* "$root"/var/cache/{apt,debconf,ldconfig}/* \
	"$root"/var/log/* "$root"/tmp/* "$root"/var/tmp/* "$root"/run/* "$root"/var/lib/dpkg/*-old "$root"/etc/*- "$root"/etc/*.dpkg-old "$root"/debootstrap
find "$root" -xdev -type f -perm /6000 -exec chmod a-s {} + # nobody becomes another user in an app
: >"$root/etc/machine-id"
: >"$root/etc/resolv.conf"
echo localhost >"$root/etc/hostname"
# The runtime brings the devices.
rm -rf "${root:?}"/dev/*
