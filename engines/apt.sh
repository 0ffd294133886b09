#!/usr/bin/env bash
# Installs those of the named Debian packages that are absent.
#
#   engines/apt.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
	# "ii": wanted and installed. A removed package that left its settings behind does not count.
	[[ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)" == ii* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "This needs the Debian packages ${missing[*]}. Install them as root: apt-get install ${missing[*]}" >&2
	exit 1
fi

echo "Installing ${missing[*]}."
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A machine that has just come up may still be holding apt's lock: wait for it instead of failing.
# What a package brings may want to run at once, as a service of this machine: nobody asked for that.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 0755 "$policy"
	trap 'rm -f "$log" "$policy"' EXIT
fi
get() { apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1 </dev/null; }
if ! { get update && get install -y --no-install-recommends "${missing[@]}"; }; then
	tail -n 20 "$log" >&2
	echo "Could not install ${missing[*]}. Read the lines above, mend the package sources, and run this again." >&2
	exit 1
fi
