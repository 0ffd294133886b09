#!/usr/bin/env bash
# Prints the path of a pinned development tool, building it first if this machine has not built it yet.
#
#   engines/tools/tool.sh golangci-lint|govulncheck
#
# The tools live outside go.mod, so that what checks Proa never decides which versions Proa is built from, and outside
# the checkout, so that every checkout of this user shares them.
set -euo pipefail

case ${1:-} in
golangci-lint) package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint version=v2.14.0 ;;
govulncheck) package=golang.org/x/vuln/cmd/govulncheck version=v1.8.0 ;;
*)
	echo "Say which tool you need: golangci-lint or govulncheck." >&2
	exit 2
	;;
esac

command -v go >/dev/null || {
	echo "Go is not on the PATH. Install the version that go.mod names, then run this again." >&2
	exit 1
}

# Both tools read Go source with the standard library they were built with: another Go is another build.
place=${XDG_CACHE_HOME:-$HOME/.cache}/proa/tools/$1-$version-$(go env GOVERSION)
if [ ! -x "$place/$1" ]; then
	echo "Building $1 $version, once for this machine; it takes a minute or three." >&2
	mkdir -p "$(dirname "$place")"
	new=$(mktemp -d "$place.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	# From outside the checkout, so that neither go.mod nor a go.work takes part.
	(cd "$new" && GOFLAGS='' GOBIN=$new CGO_ENABLED=0 go install -trimpath "$package@$version") >"$new/log" 2>&1 || {
		grep -v '^go: downloading' "$new/log" >&2 || true
		echo "Could not build $1 $version. Check that the Go module proxy is in reach, then run this again." >&2
		exit 1
	}
	mkdir -p "$place"
	mv -f "$new/$1" "$place/$1"
fi
echo "$place/$1"
