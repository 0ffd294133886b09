#!/usr/bin/env bash
# Runs PostgreSQL for this checkout: named instances, each with its own data directory, port and password, on
# loopback only. `dev` and `services` keep their data through a power cut; every other instance trades that for speed.
#
#   engines/postgres/run.sh start NAME            start it, installing PostgreSQL where root may
#   engines/postgres/run.sh start NAME ADDRESS NETWORK   let those of NETWORK reach it at ADDRESS, too
#   engines/postgres/run.sh stop [NAME]           stop it, or all of them
#   engines/postgres/run.sh status [NAME]         say whether it runs; exits 3 when it does not
#   engines/postgres/run.sh url NAME [DATABASE]   print the URL of a database
#   engines/postgres/run.sh create NAME DATABASE  create the database if it is missing
#   engines/postgres/run.sh exists NAME DATABASE  succeed if the database exists
#   engines/postgres/run.sh sql NAME              run what psql reads on its standard input, as the superuser
#   engines/postgres/run.sh destroy [NAME]        stop it and delete its data, or all of them
#
# PROA_STATE says where the data lives. It is not in the checkout, because PostgreSQL refuses to run as root and its
# own user cannot look into a private home.
set -euo pipefail
umask 077

readonly version=15
readonly bin=/usr/lib/postgresql/$version/bin
root=$(realpath "$(dirname "$0")/../..")
state=$(realpath -m "${PROA_STATE:-/var/tmp/proa-$(printf %s "$root" | sha256sum | cut -c1-8)}")
owner=$(id -un)
[ "$owner" != root ] || owner=postgres

say() { printf '%s\n' "$*"; }
die() {
	printf '%s\n' "$*" >&2
	exit 1
}

# as_owner runs a command as the user PostgreSQL runs as, from a directory and with an environment that user can use.
as_owner() (
	exec 9>&- # the server must not keep our lock
	cd /
	local become=()
	[ "$(id -u)" != 0 ] || become=(setpriv "--reuid=$owner" "--regid=$owner" --init-groups)
	exec "${become[@]}" env -i PATH="$PATH" LC_ALL=C.UTF-8 "$@"
)

use() {
	[[ "${1:-}" =~ ^[a-z][a-z0-9-]*$ ]] || die "Say which instance you mean, in lower-case letters: dev, services, test or bench."
	name=$1
	home=$state/$name
	data=$home/data
}

# users lists every process that works in the data directory: the server, and what a killed server left behind.
users() { find /proc -maxdepth 2 -name cwd -lname "$data" 2>/dev/null | cut -d/ -f3 || true; }

server() { head -n 1 "$data/postmaster.pid" 2>/dev/null || true; }
running() {
	local pid
	pid=$(server)
	# The pid in a file left by a crash may belong to someone else by now.
	[ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd" 2>/dev/null || true)" = "$data" ]
}

lock() {
	[ -d "$home" ] || return 0
	exec 9>"$home/lock"
	flock -w 120 9 || die "Another command has been busy with PostgreSQL $name for two minutes. Wait for it, then run this again."
}

install_server() {
	[ ! -x "$bin/postgres" ] || return 0
	if [ "$(id -u)" = 0 ]; then
		# Debian would also create and start a cluster of its own, on a port that nobody here asked for.
		mkdir -p /etc/postgresql-common/createcluster.d
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/proa.conf
	fi
	"$root/engines/apt.sh" "postgresql-$version"
}

make_home() {
	if [ -e "$state" ] && [ "$(stat -c %U "$state")" != "$owner" ]; then
		die "$state belongs to $(stat -c %U "$state"), but PostgreSQL has to run as $owner. Set PROA_STATE to a directory that does not exist yet."
	fi
	local dir
	for dir in "$state" "$home"; do
		[ -d "$dir" ] || install -d -m 0700 -o "$owner" -g "$(id -gn "$owner")" "$dir"
	done
}

# make_data builds the cluster beside its final place, so that an interrupted run leaves nothing half made.
make_data() {
	[ ! -f "$data/PG_VERSION" ] || return 0
	rm -rf "$data.new"
	od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$home/password"
	chown "$owner" "$home/password"
	as_owner "$bin/initdb" --pgdata="$data.new" --username=proa --pwfile="$home/password" --auth=scram-sha-256 \
		--encoding=UTF8 --locale=C.UTF-8 --no-sync >"$home/initdb.log" 2>&1 || {
		tail -n 20 "$home/initdb.log" >&2
		die "PostgreSQL could not create its data directory in $home. Make sure that $owner may enter and write there, then start it again."
	}
	echo "include 'proa.conf'" >>"$data.new/postgresql.conf"
	mv "$data.new" "$data"
}

busy() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# choose_port keeps the port of last time unless someone else has taken it.
choose_port() {
	local port
	port=$(cat "$home/port" 2>/dev/null || echo $((20000 + RANDOM % 10000)))
	while busy "$port"; do port=$((20000 + RANDOM % 10000)); done
	echo "$port" >"$home/port"
}

# configure writes the settings: $1 is a further address to listen on, and $2 the network that may come there. The operator's
# own accounts may not: they log in from this machine.
configure() {
	{
		echo "listen_addresses = '127.0.0.1${1:+,$1}'"
		echo "port = $(cat "$home/port")"
		echo "unix_socket_directories = ''"
		if [ "$name" = services ]; then
			echo 'max_connections = 300'
		elif [ "$name" != dev ]; then
			printf '%s\n' 'fsync = off' 'synchronous_commit = off' 'full_page_writes = off' \
				'max_connections = 300' 'shared_buffers = 512MB' 'max_wal_size = 4GB'
		fi
	} >"$data/proa.conf"
	{
		echo 'host all all 127.0.0.1/32 scram-sha-256'
		[ -z "${2:-}" ] || printf 'host all %s %s\n' proa,pgbroker "$2 reject" all "$2 scram-sha-256"
	} >"$data/pg_hba.conf"
	chown "$owner" "$data/proa.conf" "$data/pg_hba.conf"
}

# clear_leftovers makes room after a crash. The pid file is deleted only once nobody uses the data directory.
clear_leftovers() {
	local _
	for _ in {1..50}; do
		[ -n "$(users)" ] || break
		sleep 0.2
	done
	[ -z "$(users)" ] || die "Processes of an earlier PostgreSQL still use $data: $(users | xargs). End them, then start it again."
	rm -f "$data/postmaster.pid"
}

start() {
	install_server
	make_home
	lock
	if running && grep -qxF "listen_addresses = '127.0.0.1${1:+,$1}'" "$data/proa.conf"; then
		say "PostgreSQL $name already runs on 127.0.0.1:$(cat "$home/port")."
		return
	fi
	! running || halt # it is to listen elsewhere
	make_data
	clear_leftovers
	local _
	for _ in {1..5}; do
		choose_port
		configure "$@"
		rm -f "$home/log"
		if as_owner "$bin/pg_ctl" start -D "$data" -l "$home/log" -w -t 60 >/dev/null 2>&1; then
			say "PostgreSQL $name runs on 127.0.0.1:$(cat "$home/port")."
			return
		fi
		# Someone may have taken the port between our look and the start: only then is another try of use.
		grep -q 'Address already in use' "$home/log" 2>/dev/null || break
	done
	tail -n 20 "$home/log" >&2 || true
	die "PostgreSQL $name did not start. Its last words are above; the whole log is $home/log."
}

stop() {
	lock
	if ! running; then
		say "PostgreSQL $name is not running."
		return
	fi
	halt
	say "PostgreSQL $name stopped."
}

halt() {
	local how
	for how in fast immediate; do
		as_owner "$bin/pg_ctl" stop -D "$data" -m "$how" -w -t 30 >/dev/null 2>&1 && break
	done
	! running || die "PostgreSQL $name (pid $(server)) does not stop. Look at $home/log, then end that process."
}

status() {
	if ! running; then
		say "PostgreSQL $name is not running."
		return 3
	fi
	say "PostgreSQL $name runs on 127.0.0.1:$(cat "$home/port"), pid $(server), data in $data."
}

must_run() { running || die "PostgreSQL $name is not running. Start it first: engines/postgres/run.sh start $name"; }

url() {
	must_run
	say "postgres://proa:$(cat "$home/password")@127.0.0.1:$(cat "$home/port")/${1:-postgres}?sslmode=disable"
}

# sql runs the statement on its standard input, with :database set. The password travels in the environment, where
# other users cannot see it.
sql() {
	must_run
	PSQLRC=/dev/null PGPASSWORD=$(cat "$home/password") \
		"$bin/psql" -qAt -v ON_ERROR_STOP=1 -v "database=$1" -h 127.0.0.1 -p "$(cat "$home/port")" -U proa -d postgres
}

exists() { [ "$(sql "$1" <<<"SELECT 1 FROM pg_database WHERE datname = :'database'")" = 1 ]; }

create() {
	! exists "$1" || return 0
	sql "$1" <<<'CREATE DATABASE :"database"'
	say "Created the database $1 in PostgreSQL $name."
}

destroy() {
	stop
	rm -rf "$home"
	rmdir "$state" 2>/dev/null || true
	say "Deleted the data of PostgreSQL $name."
}

# each runs a command for one instance, or for all of them when none is named.
each() {
	local command=$1 one result=0
	shift
	if [ $# -gt 0 ]; then
		use "$1"
		"$command"
		return
	fi
	for one in "$state"/*/; do
		[ -d "$one" ] || continue
		use "$(basename "$one")"
		"$command" || result=$?
	done
	return "$result"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
start)
	use "${1:-}"
	[ $# -eq 1 ] || [ $# -eq 3 ] || die "Say which address and which network: engines/postgres/run.sh start $name ADDRESS NETWORK"
	shift
	start "$@"
	;;
sql)
	use "${1:-}"
	sql postgres
	;;
url | create | exists)
	use "${1:-}"
	shift
	[ "$command" = url ] || [ $# -gt 0 ] || die "Say which database: engines/postgres/run.sh $command $name DATABASE"
	"$command" "$@"
	;;
stop | status | destroy) each "$command" "$@" ;;
*)
	sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
	exit 2
	;;
esac
