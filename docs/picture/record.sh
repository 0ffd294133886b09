#!/usr/bin/env bash
# Makes docs/push.svg anew: pushes the sample config-sidecar in a terminal, with what `make up` runs, and draws what stands there
# at the end. Nothing in the picture is written by hand.
set -euo pipefail
columns=100 rows=36 first=13 last=22

# session is what is typed. A person would take as long between two commands.
session() {
	ask 'cat manifest.yml'
	sleep 1
	ask 'proa push'
	sleep 2
	ask "curl $(proa curl "/v3/routes?hosts=config-sidecar" | jq -r '"http://" + .resources[0].url')$port/config"
}

ask() {
	printf '\033[32m$\033[0m \033[1m%s\033[0m\n' "$1"
	eval "$1"
}

if [ "${1:-}" = session ]; then
	stty cols "$columns" rows "$rows"
	session
	exit
fi

root=$(realpath "$(dirname "$0")/../..")
[ -f "${PROA_RUN:-$root/.run}/env" ] || {
	echo "Nothing is up to push to. Run make up first." >&2
	exit 1
}
# shellcheck source=/dev/null
. "${PROA_RUN:-$root/.run}/env"
port=:${PROA_GATEWAY_HTTP##*:}
[ "$port" != :80 ] || port=
work=$(mktemp -d)
export PROA_HOME=$work/home TERM=xterm-256color port

organization() { proa curl --fail '/v3/organizations?names=acme' | jq -r '.resources[0].guid // empty'; }
finish() {
	proa curl --fail -X DELETE "/v3/organizations/$(organization)" >/dev/null || echo "The organization acme stays." >&2
	rm -rf "$work"
}

proa login -a "$PROA_API_URL" -u "$PROA_ADMIN_USERNAME" -p "$PROA_ADMIN_PASSWORD" >/dev/null
[ -z "$(organization)" ] || {
	echo "There is an organization acme already, of somebody who has tried the quick start. Delete it, then run this again." >&2
	exit 1
}
proa create-org acme >/dev/null
trap finish EXIT
proa target -o acme >/dev/null
proa create-space dev >/dev/null
proa target -s dev >/dev/null

cp -R "$root/samples/config-sidecar" "$work/app"
cd "$work/app"
script -qec "bash '$root/docs/picture/record.sh' session" /dev/null </dev/null >"$work/recorded"
cd "$root"
go run ./docs/picture -title "an app and its sidecar, pushed" -columns "$columns" -first "$first" -last "$last" <"$work/recorded" >"$work/push.svg"
mv "$work/push.svg" docs/push.svg
echo "docs/push.svg is new. Look at it before you commit it."
