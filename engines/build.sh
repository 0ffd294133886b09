#!/usr/bin/env bash
# Builds the engines that come as Go modules, each from the versions its go.mod pins, once for this machine.
#
#   engines/build.sh [NAME...]   build what is missing of the named engines, or of all; print where each one is
#   engines/build.sh find        print the name and place of each; fail if one is not built
#
# An engine is a directory here with a go.mod: its tool lines are the programs to build, and what it needs beyond
# modules (a main of our own) lies beside it. What is built goes to a cache outside the checkout, under a name that
# covers everything it was built from, so that every checkout of this user shares it and a change builds anew.
set -euo pipefail

here=$(realpath "$(dirname "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/proa/engines

command -v go >/dev/null || {
	echo "Go is not on the PATH. Install the version that go.mod names, then run this again." >&2
	exit 1
}

list() { (cd "$here" && printf '%s\n' */go.mod) | cut -d/ -f1; }

# version prints the version of the module that the engine is: the one that holds its first tool, or, where a main of
# ours puts it together, the first that this main imports.
version() {
	awk '$1 == "tool" && $2 != "(" { tool = tool ? tool : $2 } /^tool \($/ { getline; tool = $1 }
		{ sub(/^require /, "") } $2 ~ /^v[0-9]/ && (tool ? index(tool "/", $1 "/") == 1 : !/indirect/) { print $2; exit }' "$here/$1/go.mod"
}

# flags prints what the linker must be told, for the engines that say who they are.
flags() {
	local v
	v=$(version "$1")
	case $1 in
	kubernetes)
		local base=k8s.io/component-base/version minor=${v#v*.}
		echo "-X $base.gitVersion=$v -X $base.gitMajor=1 -X $base.gitMinor=${minor%%.*} -X $base.gitTreeState=clean"
		;;
	lifecycle) echo "-X github.com/buildpacks/lifecycle/cmd.Version=${v#v}" ;;
	esac
}

place() {
	local print
	print=$({
		go env GOVERSION
		sha256sum <"$here/build.sh"
		cd "$here/$1" && find . -type f | LC_ALL=C sort | xargs sha256sum
	} | sha256sum | cut -c1-12)
	echo "$cache/$1-$(version "$1")-$print"
}

build() {
	local name=$1 place since=$SECONDS
	[ -f "$here/$name/go.mod" ] || {
		echo "There is no engine called $name. These are: $(list | xargs)." >&2
		exit 2
	}
	place=$(place "$name")
	if [ ! -d "$place" ]; then
		echo "Building $name $(version "$name"), once for this machine." >&2
		mkdir -p "$cache"
		new=$(mktemp -d "$place.XXXXXX")
		trap 'rm -rf "$new" "$new.log"' EXIT
		# Nothing of this user's own Go settings may change what is built.
		(
			cd "$here/$name"
			local what=(tool)
			[ ! -f main.go ] || what=(.)
			GOWORK=off GOFLAGS='' GOOS=linux GOARCH=amd64 GOAMD64=v1 GOEXPERIMENT='' CGO_ENABLED=0 GOBIN=$new \
				go install -mod=readonly -trimpath -buildvcs=false -ldflags="-s -w $(flags "$name")" "${what[@]}"
		) >"$new.log" 2>&1 || {
			grep -v '^go: downloading' "$new.log" | tail -n 30 >&2 || true
			echo "Could not build $name. Check that the Go module proxy is in reach, then run this again." >&2
			exit 1
		}
		rm -f "$new.log"
		# The gateway's own definitions, of the version it was built with.
		[ "$name" != traefik ] || install -m 0644 -D -t "$new/crds" "$(cd "$here/$name" && go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)"/config/crd/standard/gateway.*.yaml
		chmod 0755 "$new"
		# Another build of the same may have been faster.
		mv -T "$new" "$place" 2>/dev/null || [ -d "$place" ] || {
			echo "Could not put $name into $cache. See that there is room on the disk, then run this again." >&2
			exit 1
		}
		echo "Built $name in $((SECONDS - since)) s." >&2
	fi
	echo "$place"
}

find_all() {
	local name place
	for name in $(list); do
		place=$(place "$name")
		[ -d "$place" ] || {
			echo "The engine $name is not built yet. Build all that are missing: make engines" >&2
			exit 1
		}
		echo "$name $place"
	done
}

if [ "${1:-}" = find ]; then
	find_all
	exit
fi
[ $# -gt 0 ] || mapfile -t names < <(list)
# Two at a time: while one downloads or links, the other has the processors.
pids=()
for name in "${@:-${names[@]}}"; do
	[ ${#pids[@]} -lt 2 ] || {
		wait "${pids[0]}"
		pids=("${pids[@]:1}")
	}
	(build "$name") &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
