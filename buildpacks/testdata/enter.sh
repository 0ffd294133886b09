#!/usr/bin/env bash
# Runs a command in the root filesystem of an image, as a container would: as the image's user, with processes of its own,
# nothing to write to but what is bound into it, and without a network unless the host's is asked for.
#
#   enter.sh ROOT none|host FROM:TO... -- COMMAND...     FROM is bound to TO inside; the environment is passed on
#
# Everything it mounts and starts goes away with it.
set -euo pipefail

if [ "${1:-}" != inside ]; then
	[ "$2" = host ] && net=() || net=(--net)
	exec unshare --mount --pid --fork --kill-child "${net[@]}" -- "$0" inside "$@"
fi
root=$2 network=$3
shift 3

mount --bind "$root" "$root"
for binding; do
	shift
	[ "$binding" != -- ] || break
	mkdir -p "$root${binding#*:}"
	mount --bind "${binding%%:*}" "$root${binding#*:}"
done
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero random urandom; do
	: >"$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mount -o remount,bind,ro "$root"
[ "$network" = host ] || ip link set lo up

exec chroot --userspec=2000:2000 --groups=2000 "$root" "$@"
